// Has a copy of the loader's variable for itself, which the loader fills in last.
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_stack_end;

int main(void) {
    char *block = malloc(100);
    printf("%d\n", block != NULL && __libc_stack_end != NULL);
    free(block);
    return 0;
}
