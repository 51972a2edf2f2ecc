/* What C, POSIX and glibc say of the malloc family. Runs with the library linked, and with it preloaded; without it, the C library's own
 * functions must pass as well (then with the argument `system`). */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUIRE(holds)                                                   \
    do {                                                                 \
        if (!(holds)) {                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

/* Sizes that the compiler cannot see through. */
static volatile size_t huge = SIZE_MAX, most = PTRDIFF_MAX, zero = 0;

static int aligned(const void *object, size_t align) { return (uintptr_t)object % align == 0; }

static void sizes(void) {
    size_t bytes;
    for (bytes = 0; bytes < 5000000; bytes = bytes * 9 / 8 + 1) {
        unsigned char *object = malloc(bytes), *cleared = calloc(1, bytes), *bigger;
        size_t i;
        REQUIRE(object && cleared && object != cleared);
        REQUIRE(aligned(object, bytes < 16 ? 8 : 16) && aligned(cleared, bytes < 16 ? 8 : 16));
        REQUIRE(malloc_usable_size(object) >= bytes);
        for (i = 0; i < bytes; i++) REQUIRE(cleared[i] == 0);
        memset(object, 0x5a, malloc_usable_size(object));
        memset(cleared, 0xa5, bytes);
        bigger = realloc(object, bytes + 100);
        REQUIRE(bigger && aligned(bigger, 16));
        for (i = 0; i < bytes; i++) REQUIRE(bigger[i] == 0x5a);
        bigger = realloc(bigger, bytes / 3 + 1);
        for (i = 0; i < bytes / 3; i++) REQUIRE(bigger[i] == 0x5a);
        free(bigger);
        free(cleared);
    }
}

static void edges(int system) {
    char *object, *kept;
    void *place = &place;
    REQUIRE(malloc_usable_size(NULL) == 0);
    free(NULL);
    object = malloc(zero);
    kept = malloc(zero);
    REQUIRE(object && kept && object != kept);
    free(kept);
    kept = realloc(object, 20);
    REQUIRE(kept);
    strcpy(kept, "kept");
    errno = 0;
    REQUIRE(!malloc(huge) && errno == ENOMEM);
    errno = 0;
    REQUIRE(!malloc(most + 1) && errno == ENOMEM);
    errno = 0;
    REQUIRE(!calloc(huge / 4, 8) && errno == ENOMEM);
    errno = 0;
    REQUIRE(!realloc(kept, huge) && errno == ENOMEM);
    errno = 0;
    REQUIRE(!reallocarray(kept, huge / 2, 3) && errno == ENOMEM);
    REQUIRE(strcmp(kept, "kept") == 0);
    kept = reallocarray(kept, 1000, 10);
    REQUIRE(kept && strcmp(kept, "kept") == 0);
    REQUIRE(!realloc(kept, zero));
    object = realloc(NULL, zero);
    REQUIRE(object);
    errno = 77;
    free(object);
    free(malloc(40u << 20));
    REQUIRE(errno == 77);
    object = calloc(zero, 8);
    REQUIRE(object);
    free(object);

    errno = 77;
    REQUIRE(posix_memalign(&place, 3, 8) == EINVAL && place == &place);
    REQUIRE(posix_memalign(&place, 4, 8) == EINVAL && place == &place);
    REQUIRE(posix_memalign(&place, zero, 8) == EINVAL && place == &place);
    REQUIRE(posix_memalign(&place, 64, huge - 64) == ENOMEM && place == &place);
    /* More than the kernel has addresses for. */
    REQUIRE(posix_memalign(&place, 64, most / 2) == ENOMEM && place == &place);
    if (!system) REQUIRE(errno == 77);
    REQUIRE(posix_memalign(&place, 64, zero) == 0 && aligned(place, 64));
    free(place);
    if (!system) {
        errno = 0;
        REQUIRE(!aligned_alloc(24, 48) && errno == EINVAL);
        errno = 0;
        REQUIRE(!aligned_alloc(zero, 48) && errno == EINVAL);
    }
    errno = 0;
    REQUIRE(!memalign(huge, 8) && errno == EINVAL);
    errno = 0;
    REQUIRE(!pvalloc(huge) && errno == ENOMEM);
    object = memalign(40, 100);
    REQUIRE(object && aligned(object, 64));
    free(object);
    object = valloc(10);
    REQUIRE(object && aligned(object, 4096));
    free(object);
    object = pvalloc(10);
    REQUIRE(object && aligned(object, 4096) && malloc_usable_size(object) >= 4096);
    free(object);
}

static void alignments(void) {
    size_t align, bytes;
    for (align = 8; align <= 4u << 20; align *= 2) {
        for (bytes = 1; bytes < 3u << 20; bytes *= 7) {
            void *place;
            char *object = aligned_alloc(align, bytes);
            REQUIRE(object && aligned(object, align));
            memset(object, 1, bytes);
            object = realloc(object, bytes + 5000);
            REQUIRE(object && object[0] == 1 && object[bytes - 1] == 1);
            free(object);
            REQUIRE(posix_memalign(&place, align, bytes) == 0 && aligned(place, align));
            memset(place, 2, bytes);
            free(place);
        }
    }
}

/* The kernel takes no locked memory back, and says so in errno, which free must leave as it is. */
static void locked_memory(void) {
    void *objects[40];
    int i;
    for (i = 0; i < 40; i++) {
        objects[i] = malloc(40000);
        REQUIRE(objects[i]);
    }
    if (mlock(objects[10], 4096) != 0) perror("left out, because memory cannot be locked here");
    for (i = 0; i < 39; i++) free(objects[i]);
    /* Longer than idle memory is kept. */
    usleep(700000);
    errno = 77;
    free(objects[39]);
    REQUIRE(errno == 77);
}

/* Objects go round the threads: each frees what the one before has left. */
#define SLOTS 512
static void *slots[SLOTS];

static void *churn(void *argument) {
    uint64_t state = (uintptr_t)argument * 0x9e3779b97f4a7c15u + 1;
    int i;
    for (i = 0; i < 100000; i++) {
        size_t bytes;
        void *object;
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        bytes = state >> 40 & 1023;
        object = malloc(bytes);
        REQUIRE(object);
        memset(object, (int)state, bytes);
        free(__atomic_exchange_n(&slots[state >> 20 & (SLOTS - 1)], object, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void threads_and_forks(void) {
    pthread_t threads[3];
    uintptr_t i, round;
    for (i = 0; i < 3; i++) REQUIRE(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    for (round = 0; round < 10; round++) {
        int status;
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            churn((void *)(round + 10));
            _exit(0);
        }
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    for (i = 0; i < 3; i++) REQUIRE(pthread_join(threads[i], NULL) == 0);
    for (i = 0; i < SLOTS; i++) free(slots[i]);
}

static void *late;

static void after_main(void) {
    free(late);
    late = malloc(100);
    REQUIRE(late);
    free(late);
}

int main(int argc, char **argv) {
    int system = argc > 1 && strcmp(argv[1], "system") == 0;
    late = malloc(3000);
    REQUIRE(atexit(after_main) == 0);
    sizes();
    edges(system);
    alignments();
    locked_memory();
    threads_and_forks();
    puts("family: as it should be");
    return 0;
}
