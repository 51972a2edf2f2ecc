/* For the tests in C that compare memory: what the kernel says of the process. */
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

/* A number of /proc/self/status, such as VmRSS, in bytes; 0 if there is none. */
static size_t status(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) sscanf(line + strlen(name) + 1, "%zu", &kib);
    if (file) fclose(file);
    return kib << 10;
}
