/* Sizes from 1 B to 1 MB, of which some live on, from four threads. Prints what is exact. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, KEPT = 2000 };

static void *small(void *chunks) {
    void **kept = chunks;
    for (int i = 0; i < 200000; i++) {
        void *chunk = malloc(100);
        if (i % 100 == 0) kept[i / 100] = chunk;
        else free(chunk);
    }
    return 0;
}

static void *grow(void *nothing) {
    for (int i = 0; i < 2000; i++) {
        char *text = 0;
        for (size_t size = 16; size <= 16384; size *= 2) text = realloc(text, size);
        free(text);
    }
    return nothing;
}

static void *large(void *chunks) {
    void **kept = chunks;
    for (int i = 0; i < 40; i++) kept[i] = malloc(1000000);
    for (int i = 0; i < 30; i++) free(kept[i]);
    return 0;
}

int main(void) {
    static void *kept[THREADS][KEPT];
    pthread_t threads[THREADS];
    void *(*work[THREADS])(void *) = {small, grow, large, small};
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work[i], kept[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    return kept[0][0] == kept[3][0];
}
