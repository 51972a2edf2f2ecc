/* Allocates for variables, and prints the return addresses of each allocation as `types.rs` does. */
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    long key;
    struct node *next;
};
typedef struct {
    float x, y;
} point;

extern char __executable_start;
extern void *__libc_malloc(size_t);
static void *stack[48];
static int depth = -1;

void *malloc(size_t size) {
    if (depth == 0) depth = backtrace(stack, 48);
    return __libc_malloc(size);
}

static void show(const char *label) {
    printf("%s 16", label);
    for (int i = 1; i < depth; i++) printf(" %lx", (unsigned long)stack[i]);
    printf("\n");
    depth = 0;
}

__attribute__((noinline)) static struct node *make(void) {
    struct node *made = malloc(sizeof *made);
    return made;
}

int main(void) {
    backtrace(stack, 48);
    printf("%lx\n", (unsigned long)&__executable_start);
    depth = 0;
    struct node *first = make();
    show("declared");
    point *points;
    points = malloc(2 * sizeof(point));
    show("assigned");
    first->next = malloc(sizeof(struct node));
    show("member");
    /* So that no allocation is optimized away. */
    return points == NULL || first->next == NULL;
}
