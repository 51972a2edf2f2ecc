// A library that is loaded by `dlopen`.
#include <stdlib.h>

void *make(void) {
    char *block = malloc(888);
    *(volatile char *)block = 1;
    return block;
}
