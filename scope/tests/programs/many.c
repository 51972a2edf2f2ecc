// Allocates as often as its argument says, through 1024 call stacks, and keeps 300,000 chunks.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned odd, even;

// Two calls in each level, so that the path says which of them the stack has.
#define LEVEL(name, next)                                                                          \
    __attribute__((noinline)) static void *name(unsigned path, size_t size) {                      \
        void *made;                                                                                \
        if (path & 1) {                                                                            \
            made = next(path >> 1, size);                                                          \
            odd++;                                                                                 \
        } else {                                                                                   \
            made = next(path >> 1, size);                                                          \
            even++;                                                                                \
        }                                                                                          \
        return made;                                                                               \
    }

__attribute__((noinline)) static void *leaf(unsigned path, size_t size) {
    void *made = malloc(size);
    even += path;
    return made;
}
LEVEL(level1, leaf)
LEVEL(level2, level1)
LEVEL(level3, level2)
LEVEL(level4, level3)
LEVEL(level5, level4)
LEVEL(level6, level5)
LEVEL(level7, level6)
LEVEL(level8, level7)
LEVEL(level9, level8)
LEVEL(level10, level9)

#define KEPT 300000
static char *kept[KEPT];

int main(int argc, char **argv) {
    uint64_t state = 1;
    for (long count = argc > 1 ? atol(argv[1]) : 1000; count > 0; count--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned place = (state >> 33) % KEPT;
        free(kept[place]);
        size_t size = 200 + (state >> 20) % 400;
        kept[place] = level10(state >> 40, size);
        for (size_t byte = 0; byte < size; byte += 64)
            kept[place][byte] = 1;
    }
    printf("%u\n", odd);
    return 0;
}
