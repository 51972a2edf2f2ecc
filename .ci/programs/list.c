/* Builds a list of which it reads one word of four a node, prints the sum, and fails on purpose. */
#include <stdio.h>
#include <stdlib.h>

struct node {
    long key;
    long unused[2];
    struct node *next;
};

int main(void) {
    struct node *list = NULL;
    for (long key = 0; key < 10000; key++) {
        struct node *node = malloc(sizeof *node);
        if (node == NULL)
            return 1;
        node->key = key;
        node->next = list;
        list = node;
    }
    long sum = 0;
    while (list != NULL) {
        struct node *next = list->next;
        sum += list->key;
        free(list);
        list = next;
    }
    printf("%ld\n", sum);
    return 3;
}
