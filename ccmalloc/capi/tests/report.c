/* Programs whose end CCMALLOC_REPORT must survive. The argument `environment` loses the environment. Without it, the program, which is
 * started with another group's rights, makes them its own; it ends with 77 if the system has not given them. */
#define _GNU_SOURCE
#include <ccmalloc.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int count, char **arguments) {
    gid_t group = getegid();
    if (!ccmalloc_contains(ccmalloc(1, NULL))) return 1;
    if (count > 1 && strcmp(arguments[1], "environment") == 0) {
        environ = (char **)8;
        return 0;
    }
    if (!getauxval(AT_SECURE)) return 77;
    return setresgid(group, group, group) != 0;
}
