/* A library that is opened with RTLD_DEEPBIND frees and resizes what the program has allocated, and the program what the library has. Built
 * twice: with -DLIBRARY as the library, and without as the program, whose argument is the library's path. */
#include <stdlib.h>
#include <string.h>

#ifdef LIBRARY

char *make(size_t bytes) { return memset(malloc(bytes), 7, bytes); }
char *resize(char *object, size_t bytes) { return realloc(object, bytes); }
void release(char *object) { free(object); }

#else

#include <dlfcn.h>

int main(int count, char **arguments) {
    static const size_t sizes[] = {20, 3000, 100000, 3 << 20};
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    char *(*make)(size_t), *(*resize)(char *, size_t);
    void (*release)(char *);
    size_t i;
    if (!library) return 1;
    *(void **)&make = dlsym(library, "make");
    *(void **)&resize = dlsym(library, "resize");
    *(void **)&release = dlsym(library, "release");
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *theirs = make(sizes[i]), *ours = strdup("ours");
        theirs = realloc(theirs, 2 * sizes[i]);
        if (theirs[sizes[i] - 1] != 7) return 2;
        ours = resize(ours, sizes[i]);
        if (strcmp(ours, "ours") != 0) return 3;
        release(ours);
        free(theirs);
    }
    return dlclose(library) != 0 || dlopen("no such library", RTLD_NOW | RTLD_DEEPBIND) || !dlerror();
}

#endif
