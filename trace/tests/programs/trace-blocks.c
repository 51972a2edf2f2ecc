// Block operations of libc on chunks that are accessed in no other way.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char __executable_start, etext;

int main(void) {
    enum { SMALL = 700, LARGE = 9000 };
    // Lengths that the compiler does not know.
    volatile size_t small = SMALL, large = LARGE, part = 333;
    // Memory that was used has to be cleared.
    char *used = malloc(large), *other = malloc(small);
    memset(used, 1, large);
    char *behind = malloc(100);
    free(used);
    char *cleared = calloc(large / 3, 3), *filled = malloc(small), *copied = malloc(large);
    memset(filled + 5, 2, part);
    memset(other, 3, small);
    memcpy(copied + 1000, other + 100, part);
    memcpy(copied + 2001, cleared + 31, large - 2001);
    memmove(copied + 1100, copied + 1000, part);
    int result = memcmp(copied + 1100, other + 100, part);
    printf("text %lu %lu\n", (unsigned long)&__executable_start, (unsigned long)&etext);
    printf("chunk %lu %d\n", (unsigned long)cleared, LARGE);
    printf("chunk %lu %d\n", (unsigned long)filled, SMALL);
    printf("chunk %lu %d\n", (unsigned long)copied, LARGE);
    printf("chunk %lu %d\n", (unsigned long)other, SMALL);
    printf("result %d %d\n", result, used == cleared);
    free(behind);
    return 0;
}
