/* Pairs of malloc and free, to be counted or timed under this library and without; every object is written to. The first argument says in what order, the
 * second how many pairs:
 *
 *     cc -O1 -fno-builtin pairs.c -o pairs
 *     LD_PRELOAD=.../libccmalloc.so valgrind --tool=callgrind ./pairs pair 300000      (less those of 100000: what start and end cost)
 *     LD_PRELOAD=.../libccmalloc.so bash -c 'time ./pairs mixed 10000000' */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 1000
#define LIVE 4096

static void *objects[LIVE];

static void *allocate(size_t bytes) {
    char *object = malloc(bytes);
    if (!object) abort();
    *object = 1;
    return object;
}

int main(int argc, char **argv) {
    const char *order = argc > 1 ? argv[1] : "";
    long pairs = argc > 2 ? atol(argv[2]) : 0, i;
    uint64_t state = 88172645463325252u;
    int k;
    if (!strcmp(order, "pair")) {
        for (i = 0; i < pairs; i++) free(allocate(24));
    } else if (!strcmp(order, "batch")) {
        for (i = 0; i < pairs; i += BATCH) {
            for (k = 0; k < BATCH; k++) objects[k] = allocate(24);
            for (k = 0; k < BATCH; k++) free(objects[k]);
        }
    } else if (!strcmp(order, "mixed")) {
        for (i = 0; i < pairs; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            free(objects[state % LIVE]);
            objects[state % LIVE] = allocate(8 + (state >> 20) % 400);
        }
    } else {
        fprintf(stderr, "usage: pairs pair|batch|mixed COUNT\n");
        return 2;
    }
    return 0;
}
