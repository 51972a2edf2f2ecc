// One block by each function that allocates, of a size of its own.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

int main(void) {
    void *block;
    if (malloc(1001) == NULL || calloc(2, 501) == NULL || realloc(NULL, 1003) == NULL)
        return 1;
    if (reallocarray(NULL, 2, 502) == NULL || memalign(64, 1005) == NULL)
        return 1;
    if (posix_memalign(&block, 64, 1006) != 0 || (uintptr_t)block % 64 != 0)
        return 1;
    if (aligned_alloc(64, 1024) == NULL || valloc(1008) == NULL || pvalloc(5000) == NULL)
        return 1;
    // In libc, which calls `malloc` itself.
    char text[1010];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    char *copy = strdup(text);
    // Grows, shrinks and goes.
    block = realloc(realloc(malloc(2001), 20002), 2003);
    free(block);
    // Refused.
    if (malloc(PTRDIFF_MAX) != NULL || calloc(SIZE_MAX, 2) != NULL ||
        reallocarray(copy, SIZE_MAX, 2) != NULL || realloc(copy, PTRDIFF_MAX) != NULL)
        return 1;
    free(NULL);
    printf("%zu\n", malloc_usable_size(copy));
    return copy[0] != 'x' || strlen(copy) != 1009;
}
