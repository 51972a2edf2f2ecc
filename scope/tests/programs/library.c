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

// For `LD_AUDIT`.
unsigned la_version(unsigned version) { return version; }
