/* How much memory programs of several kinds take. Run with the library preloaded: each argument
 * names a case. Resident memory is compared with what the program has touched, and never with
 * time. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "status.h"

#define REQUIRE_AT_MOST(what, most)                                                             \
    do {                                                                                        \
        size_t is = (what);                                                                     \
        printf("%s: %zu MiB, at most %zu\n", #what, is / MIB, (size_t)(most) / MIB);            \
        if (is > (most)) exit(1);                                                               \
    } while (0)

static size_t resident(void) { return status("VmRSS"); }

static void *filled(size_t bytes) {
    void *object = malloc(bytes);
    if (!object) exit(2);
    return memset(object, 1, bytes);
}

/* Objects whose last pages a huge page would make resident: 1 MiB, 2.1 MB, 4.01 MB. */
static void large(void) {
    static const size_t sizes[] = {MIB, 2200000, 4204800};
    static void *objects[256];
    size_t i, k;
    for (k = 0; k < 3; k++) {
        size_t count = 256 * MIB / sizes[k];
        for (i = 0; i < count; i++) objects[i] = filled(sizes[k]);
        REQUIRE_AT_MOST(resident(), count * sizes[k] * 105 / 100 + 8 * MIB);
        for (i = 0; i < count; i++) free(objects[i]);
        REQUIRE_AT_MOST(resident(), 40 * MIB);
    }
    /* The same after other uses of the same memory. */
    for (k = 0; k < 3; k++) {
        size_t count = 64 * MIB / sizes[k];
        for (i = 0; i < count; i++) objects[i] = filled(sizes[k]);
        for (i = 0; i < count; i++) free(objects[i]);
        objects[0] = filled(96 * MIB);
        free(objects[0]);
    }
    for (i = 0; i < 128; i++) objects[i] = filled(MIB);
    REQUIRE_AT_MOST(resident(), 128 * MIB * 110 / 100 + 24 * MIB);
    for (i = 0; i < 128; i++) free(objects[i]);
}

/* Tables of zeros of which little is used, also where filled objects were. */
static void sparse(void) {
    size_t i;
    char *table, *tables[64], *big = filled(64 * MIB);
    free(big);
    malloc_trim(0);
    table = calloc(1, 1024 * MIB);
    for (i = 0; i < 1024 * MIB; i += 2 * MIB) table[i] = 1;
    for (i = 0; i < 64; i++) {
        tables[i] = calloc(1, 5 * MIB);
        tables[i][0] = tables[i][3 * MIB] = 1;
    }
    REQUIRE_AT_MOST(resident(), 10 * MIB);
    /* Growing does not make it less sparse. */
    table = realloc(table, 1536 * MIB);
    for (i = 1024 * MIB; i < 1536 * MIB; i += 2 * MIB) table[i] = 1;
    REQUIRE_AT_MOST(resident(), 14 * MIB);
    if (table[512 * MIB] != 1 || table[512 * MIB + 1] != 0) exit(3);
    for (i = 0; i < 64; i++) free(tables[i]);
    free(table);
}

/* Vectors that grow to 4 KiB to 256 KiB by doubling, are freed, and grow again. */
static void vectors(void) {
    enum { COUNT = 1000 };
    static char *vectors[COUNT];
    static size_t bytes[COUNT];
    size_t round, i, live = 0;
    unsigned state = 1;
    for (round = 0; round < 20; round++)
        for (i = 0; i < COUNT; i++) {
            size_t wanted;
            state = state * 1103515245 + 12345;
            wanted = (size_t)4096 << (state >> 16) % 7;
            if (wanted < bytes[i]) {
                free(vectors[i]);
                vectors[i] = NULL;
                bytes[i] = 0;
            }
            while (bytes[i] < wanted) {
                size_t more = bytes[i] ? bytes[i] * 2 : 1024;
                vectors[i] = realloc(vectors[i], more);
                if (!vectors[i]) exit(2);
                memset(vectors[i] + bytes[i], 1, more - bytes[i]);
                bytes[i] = more;
            }
        }
    for (i = 0; i < COUNT; i++) live += bytes[i];
    REQUIRE_AT_MOST(status("VmHWM"), live * 140 / 100 + 16 * MIB);
    for (i = 0; i < COUNT; i++) free(vectors[i]);
}

enum { THREADS = 20, OBJECTS = 200000 };
static pthread_barrier_t barrier;

static void *work_and_idle(void *argument) {
    void **objects = argument;
    int i;
    for (i = 0; i < OBJECTS; i++) objects[i] = filled(40 + i % 81);
    for (i = 0; i < OBJECTS; i++) free(objects[i]);
    for (i = 0; i < 10; i++) objects[i] = filled(3000000);
    for (i = 0; i < 10; i++) free(objects[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* What idle threads have freed goes back in time when another thread allocates, and at once on request. */
static void idle(void) {
    static void *objects[THREADS][OBJECTS];
    pthread_t threads[THREADS];
    size_t i;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work_and_idle, objects[i]);
    pthread_barrier_wait(&barrier);
    sleep(1);
    for (i = 0; i < 100; i++) free(filled(100000));
    REQUIRE_AT_MOST(resident(), sizeof objects + 80 * MIB);
    malloc_trim(0);
    REQUIRE_AT_MOST(resident(), sizeof objects + 50 * MIB);
    pthread_barrier_wait(&barrier);
    for (i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void *leave_objects(void *argument) {
    void **objects = argument;
    int i;
    for (i = 0; i < OBJECTS; i++) objects[i] = filled(16 + i % 80);
    return NULL;
}

/* What ended threads have left goes back as it is freed. */
static void ended(void) {
    static void *objects[THREADS][OBJECTS];
    pthread_t threads[THREADS];
    size_t i, k;
    for (i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, leave_objects, objects[i]);
    for (i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (i = 0; i < THREADS; i++)
        for (k = 0; k < OBJECTS; k++) free(objects[i][k]);
    REQUIRE_AT_MOST(resident(), sizeof objects + 32 * MIB);
}

static void *take_little(void *argument) {
    int i;
    for (i = 0; i < 3; i++) {
        char *object = filled(1000), *large = filled(40000);
        pthread_barrier_wait(&barrier);
        if (object[999] != 1 || large[39999] != 1) exit(4);
        free(object);
        free(large);
    }
    return argument;
}

/* More threads than may have memory of their own. */
static void threads(void) {
    enum { COUNT = 2000 };
    static pthread_t threads[COUNT];
    pthread_attr_t attributes;
    int i;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_barrier_init(&barrier, NULL, COUNT);
    for (i = 0; i < COUNT; i++)
        if (pthread_create(&threads[i], &attributes, take_little, NULL)) exit(5);
    for (i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
    /* 2 MiB of address space each for those with memory of their own. */
    REQUIRE_AT_MOST(status("VmPeak"), 2048 * MIB);
}

static void require_mappings_at_most(size_t most) {
    FILE *file = fopen("/proc/self/maps", "r");
    size_t is = 0;
    int c;
    while (file && (c = getc_unlocked(file)) != EOF) is += c == '\n';
    if (file) fclose(file);
    printf("%zu mappings, at most %zu\n", is, most);
    if (is > most) exit(1);
}

/* The OS has a limit on mappings: 65,530 by default. Buffers of 1 MiB, of which nothing is used, and mappings of the program's own. */
static void buffers(void) {
    enum { COUNT = 70000 };
    size_t i;
    for (i = 0; i < COUNT; i++) {
        if (!malloc(MIB)) exit(12);
        if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) exit(16);
    }
    require_mappings_at_most(4096);
}

/* Buffers of 1 to 4 MiB, half of which are replaced in each round. */
static void replaced(void) {
    enum { COUNT = 200 };
    static char *buffers[COUNT];
    static size_t bytes[COUNT];
    size_t round, i, k, live = 0;
    unsigned state = 1;
    for (round = 0; round < 100; round++) {
        for (i = round & 1; i < COUNT; i += 2) {
            if (buffers[i] && buffers[i][0] != (char)i) exit(13);
            free(buffers[i]);
            state = state * 1103515245 + 12345;
            bytes[i] = MIB + (state >> 8) % (3 * MIB);
            buffers[i] = malloc(bytes[i]);
            if (!buffers[i]) exit(14);
            for (k = 0; k < bytes[i]; k += 4096) buffers[i][k] = (char)i;
        }
        if (round % 25 == 0) require_mappings_at_most(1024);
    }
    for (i = 0; i < COUNT; i++) live += bytes[i];
    REQUIRE_AT_MOST(resident(), live * 125 / 100 + 24 * MIB);
    REQUIRE_AT_MOST(status("VmHWM"), live * 150 / 100 + 24 * MIB);
    for (i = 0; i < COUNT; i++) free(buffers[i]);
}

/* Objects of 60,000 bytes, of which half are freed, then all; time passes, and the program goes on. */
static void halved(void) {
    enum { COUNT = 5000 };
    static char *objects[COUNT];
    size_t i, full, left = 0;
    unsigned state = 1;
    for (i = 0; i < COUNT; i++) objects[i] = filled(60000);
    full = resident();
    REQUIRE_AT_MOST(full, (size_t)COUNT * 65536 * 104 / 100 + 8 * MIB);
    for (i = 0; i < COUNT; i++) {
        state = state * 1103515245 + 12345;
        if (state >> 31) {
            free(objects[i]);
            objects[i] = NULL;
        } else {
            left++;
        }
    }
    for (i = 0; i < 4; i++) {
        usleep(400000);
        free(filled(60000));
        free(filled(100000));
    }
    REQUIRE_AT_MOST(resident(), left * 65536 * 110 / 100 + 16 * MIB);
    for (i = 0; i < COUNT; i++) {
        if (objects[i] && (objects[i][0] != 1 || objects[i][59999] != 1)) exit(15);
        free(objects[i]);
    }
    for (i = 0; i < 4; i++) {
        usleep(400000);
        free(filled(60000));
    }
    REQUIRE_AT_MOST(resident(), 24 * MIB);
    require_mappings_at_most(512);
}

/* glibc's functions tell of this heap. */
static void statistics(void) {
    void *small = filled(100), *large = filled(50 * MIB);
    struct mallinfo2 before = mallinfo2(), after;
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (before.hblkhd < 50 * MIB || before.uordblks < 100 || before.arena < before.uordblks) exit(6);
    free(large);
    after = mallinfo2();
    if (after.hblkhd > before.hblkhd - 50 * MIB) exit(7);
    malloc_trim(0);
    if (mallinfo2().keepcost != 0) exit(8);
    if (malloc_info(1, stream) == 0 || malloc_info(0, stream) != 0) exit(9);
    fclose(stream);
    if (strncmp(text, "<malloc version=", 16) != 0 || !strstr(text, "</malloc>")) exit(10);
    malloc_stats();
    free(text);
    free(small);
}

/* With `errors:warn`, wrong frees are told, and nothing else happens. */
static void wrong(void) {
    char *object = filled(10), *other;
    static char none[100];
    free(object);
    free(object);
    free(none + 16);
    other = filled(10);
    free(other + 1);
    if (other[0] != 1) exit(11);
    free(other);
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*run)(void); } cases[] = {
        {"large", large}, {"sparse", sparse}, {"vectors", vectors}, {"idle", idle}, {"ended", ended},
        {"threads", threads}, {"statistics", statistics}, {"wrong", wrong},
        {"buffers", buffers}, {"replaced", replaced}, {"halved", halved},
    };
    size_t i;
    for (i = 0; count == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(arguments[1], cases[i].name) == 0) return cases[i].run(), 0;
    return 64;
}
