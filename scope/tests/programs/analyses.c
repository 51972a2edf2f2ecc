// Programs that were made for what analyses recognise; the argument says which.
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void patterns(void) {
    // Allocated in a loop.
    for (int round = 0; round < 100; round++) {
        volatile char *block = malloc(400);
        for (int byte = 0; byte < 10; byte++)
            block[byte] = 1;
        free((void *)block);
    }
    // Grows.
    char *grown = malloc(1000);
    for (int step = 1; step <= 8; step++) {
        grown = realloc(grown, (size_t)1000 << step);
        *(volatile char *)grown = 1;
    }
    // Is of use for a moment.
    volatile char *brief = malloc(300);
    brief[0] = 1;
    (void)brief[0];
    for (volatile int other = 0; other < 1000000; other++)
        ;
    free((void *)brief);
}

static volatile long *near, *apart;
static pthread_barrier_t barrier;

// Words of two threads, in one cache block and in two.
static void *sharing(void *place) {
    long which = (long)place;
    for (int round = 0; round < 300; round++) {
        for (long i = 0; i < 1000; i++) {
            near[which] = i;
            apart[8 * which] = i;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static volatile long *own[2];
static int apart_by_a_line;

// Two threads count in 16 and 20 bytes that each has allocated for itself, 32 bytes apart: in one
// cache line, or in two.
static void *counting(void *place) {
    long which = (long)place;
    // What the allocator needs for a thread.
    *(volatile char *)malloc(200) = 1;
    pthread_barrier_wait(&barrier);
    if (!which)
        do
            own[0] = malloc(16);
        while ((unsigned long)own[0] % 64 >= 32 != apart_by_a_line);
    pthread_barrier_wait(&barrier);
    if (which)
        own[1] = malloc(20);
    for (int round = 0; round < 6000; round++) {
        pthread_barrier_wait(&barrier);
        for (long i = 0; i < 100; i++)
            own[which][1] += i;
    }
    return NULL;
}

static void objects(void) {
    mallopt(M_ARENA_MAX, 1);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t threads[2];
    for (long which = 0; which < 2; which++)
        pthread_create(&threads[which], NULL, counting, (void *)which);
    for (int which = 0; which < 2; which++)
        pthread_join(threads[which], NULL);
    if ((unsigned long)own[0] / 64 == (unsigned long)own[1] / 64 == apart_by_a_line)
        exit(3);
}

// Two threads use the chunk for all the run, and the first does so once more at its end; another
// is touched only once it is part of the peak. The run is many times as long as what a thread's
// clock may be behind those of others (`QUOTA` in the runtime, 65,536 accesses).
static void *using(void *place) {
    for (int round = 0; round < 2000000; round++)
        ((volatile long *)place)[0] = round;
    return NULL;
}

static void late(void) {
    volatile char *large = malloc(700000);
    volatile long *used = calloc(1, 700);
    used[0] = 1;
    pthread_t threads[2];
    for (int which = 0; which < 2; which++)
        pthread_create(&threads[which], NULL, using, (void *)&used[which]);
    for (int which = 0; which < 2; which++)
        pthread_join(threads[which], NULL);
    for (int byte = 0; byte < 400000; byte += 64)
        large[byte] = 1;
    (void)used[0];
    free((void *)used);
    free((void *)large);
}

// Asks 2000 times for the size that the chunk has.
static void resizes(void) {
    volatile char *text = malloc(100000);
    for (int round = 0; round < 2000; round++) {
        text = realloc((void *)text, 100000);
        text[round] = 1;
    }
    free((void *)text);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "resizes")) {
        resizes();
        return 0;
    }
    if (argc > 1 && !strncmp(argv[1], "objects", 7)) {
        apart_by_a_line = !strcmp(argv[1], "objects-apart");
        objects();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "late")) {
        late();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "patterns")) {
        patterns();
        return 0;
    }
    near = aligned_alloc(64, 64);
    apart = aligned_alloc(64, 128);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t threads[2];
    for (long which = 0; which < 2; which++)
        pthread_create(&threads[which], NULL, sharing, (void *)which);
    for (int which = 0; which < 2; which++)
        pthread_join(threads[which], NULL);
    return 0;
}
