// Says "hi" and returns 3; or starts another program.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **words) {
    void *volatile block = malloc(99);
    free(block);
    const char *how = count > 2 ? words[1] : "";
    if (!strcmp(how, "execl"))
        return execl(words[2], words[2], "one", "two", "three", "four", "five", "six", NULL);
    if (!strcmp(how, "execlp"))
        return execlp(words[2], words[2], NULL);
    if (!strcmp(how, "execv"))
        return execv(words[2], words + 2);
    if (!strcmp(how, "spawn")) {
        int child, status;
        if (posix_spawnp(&child, words[2], 0, 0, words + 2, environ))
            return 9;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 8;
    }
    puts("hi");
    return 3;
}
