// A library that is loaded by `dlopen`.
#include <stdlib.h>

#ifndef SIZE
#define SIZE 888
#endif

void *make(void) {
    char *block = malloc(SIZE);
    *(volatile char *)block = 1;
    return block;
}
