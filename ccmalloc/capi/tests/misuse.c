/* Does what the argument names, and must be ended by the allocator: one line on stderr, and SIGABRT. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ccmalloc.h>

int main(int argc, char **argv) {
    static char data[64];
    char *volatile object = malloc(24);
    char *volatile hinted = ccmalloc(24, data);
    char *volatile large = malloc(3 << 20);
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "double-free")) {
        free(object);
        free(object);
    } else if (!strcmp(what, "double-free-hinted")) {
        free(hinted);
        ccfree(hinted);
    } else if (!strcmp(what, "double-free-large")) {
        free(large);
        free(large);
    } else if (!strcmp(what, "interior")) {
        free(object + 8);
    } else if (!strcmp(what, "interior-hinted")) {
        free(hinted + 8);
    } else if (!strcmp(what, "static")) {
        object = data;
        free(object);
    } else if (!strcmp(what, "stack")) {
        char local[64];
        object = local;
        free(object);
    } else if (!strcmp(what, "realloc-freed")) {
        free(object);
        object = realloc(object, 100);
    } else if (!strcmp(what, "realloc-freed-in-place")) {
        free(object);
        object = realloc(object, 20);
    } else {
        fprintf(stderr, "unknown: %s\n", what);
        return 2;
    }
    return 0;
}
