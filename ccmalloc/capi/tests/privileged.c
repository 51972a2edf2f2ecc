/* Started with another group's rights, makes them its own. Ends with 77 if the system has not given them. */
#define _GNU_SOURCE
#include <ccmalloc.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(void) {
    gid_t group = getegid();
    if (!getauxval(AT_SECURE)) return 77;
    if (setresgid(group, group, group) != 0 || !ccmalloc_contains(ccmalloc(1, NULL))) return 1;
    return 0;
}
