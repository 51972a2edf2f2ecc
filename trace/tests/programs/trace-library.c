// A library that comes and goes: data, bss, a pointer that the linker sets, a variable of threads.
#include <stdlib.h>
#include <string.h>

int variable = 5, array[4000];
static int *pointer = &variable, calls;
static __thread int of_thread = 3;

__attribute__((constructor)) static void begin(void) {
    array[5] = variable * 3;
}

__attribute__((destructor)) static void end(void) {
    free(strdup("gone"));
    array[5] = 0;
}

int count(int more) {
    *pointer += more;
    array[more] += ++calls;
    return *pointer + array[more] + of_thread++;
}
