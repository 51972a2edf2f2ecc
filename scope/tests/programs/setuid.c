// Says who started it, and whose rights it has.
#include <stdio.h>
#include <unistd.h>

int main(void) {
    printf("%d %d\n", (int)getuid(), (int)geteuid());
    return 3;
}
