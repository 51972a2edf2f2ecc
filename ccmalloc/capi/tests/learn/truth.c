// Programs whose objects' parents are known: `truth STRUCTURE`. See `truth.py`.
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 120000 };
#define OWN __attribute__((noinline, noclone))

static uint64_t random_state = 88172645463325252;
static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

// 24 bytes: keys in a search tree.
struct tree { struct tree *left, *right; uint64_t key; };

OWN static void insert_by_loop(struct tree **place, uint64_t key) {
    while (*place)
        place = key < (*place)->key ? &(*place)->left : &(*place)->right;
    struct tree *node = malloc(sizeof *node);
    *node = (struct tree){0, 0, key};
    *place = node;
}

OWN static struct tree *insert_by_recursion(struct tree *at, uint64_t key) {
    if (!at) {
        at = malloc(sizeof *at);
        *at = (struct tree){0, 0, key};
    } else if (key < at->key) {
        at->left = insert_by_recursion(at->left, key);
    } else {
        at->right = insert_by_recursion(at->right, key);
    }
    return at;
}

static uint64_t sum_tree(const struct tree *at) {
    return at ? at->key + 3 * sum_tree(at->left) + 5 * sum_tree(at->right) : 1;
}

static uint64_t loop(void) {
    struct tree *root = 0;
    for (int i = 0; i < NODES; i++)
        insert_by_loop(&root, next_random());
    return sum_tree(root);
}

static uint64_t recursion(void) {
    struct tree *root = 0;
    for (int i = 0; i < NODES; i++)
        root = insert_by_recursion(root, next_random());
    return sum_tree(root);
}

// 32 bytes: lists. Between two nodes, objects of the same size that belong to nobody.
struct item { struct item *next; uint64_t value[3]; };
static void *strangers[1024];

static void allocate_stranger(void) {
    void **place = &strangers[next_random() % 1024];
    free(*place);
    *place = calloc(1, 32);
}

static uint64_t sum_list(const struct item *at) {
    uint64_t sum = 0;
    for (; at; at = at->next)
        sum = sum * 31 + at->value[0];
    return sum;
}

OWN static struct item *push_front(struct item *head, uint64_t value) {
    struct item *item = malloc(sizeof *item);
    item->value[0] = value;
    item->next = head;
    return item;
}

OWN static struct item *push_back(struct item *tail, uint64_t value) {
    struct item *item = malloc(sizeof *item);
    item->value[0] = value;
    item->next = 0;
    tail->next = item;
    return item;
}

static uint64_t front(void) {
    struct item *head = 0;
    for (int i = 0; i < NODES; i++) {
        head = push_front(head, i);
        allocate_stranger();
    }
    return sum_list(head);
}

static uint64_t back(void) {
    struct item first = {0}, *tail = &first;
    for (int i = 0; i < NODES; i++) {
        tail = push_back(tail, i);
        allocate_stranger();
    }
    return sum_list(first.next);
}

// A table with chains of sixteen; a new item goes to the end.
OWN static void append_to_bucket(struct item **place, uint64_t value) {
    struct item *last = *place;
    while (last && last->next)
        last = last->next;
    struct item *item = malloc(sizeof *item);
    item->value[0] = value;
    item->next = 0;
    if (last)
        last->next = item;
    else
        *place = item;
}

static uint64_t bucket(void) {
    static struct item *table[NODES / 16];
    for (int i = 0; i < NODES; i++)
        append_to_bucket(&table[next_random() % (NODES / 16)], i);
    uint64_t sum = 0;
    for (int i = 0; i < NODES / 16; i++)
        sum = sum * 7 + sum_list(table[i]);
    return sum;
}

// Vertices that own lists of edges of 32 bytes. A new edge goes to the front: its vertex is near.
struct vertex { struct item *edges; uint64_t degree, name; };

OWN static void add_edge(struct vertex *vertex, uint64_t to) {
    struct item *edge = malloc(sizeof *edge);
    edge->value[0] = to;
    edge->next = vertex->edges;
    vertex->edges = edge;
    vertex->degree++;
}

static uint64_t adjacency(void) {
    enum { VERTICES = NODES / 16 };
    static struct vertex *vertices[VERTICES];
    for (int i = 0; i < VERTICES; i++)
        vertices[i] = calloc(1, sizeof(struct vertex));
    for (int i = 0; i < NODES; i++)
        add_edge(vertices[next_random() % VERTICES], next_random() % VERTICES);
    uint64_t sum = 0;
    for (int i = 0; i < VERTICES; i++)
        sum = sum * 7 + sum_list(vertices[i]->edges);
    return sum;
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The nodes are glibc's; the keys lie in an array.
static uint64_t library_tree(void) {
    static uint64_t keys[NODES];
    void *root = 0;
    for (int i = 0; i < NODES; i++) {
        keys[i] = next_random();
        tsearch(&keys[i], &root, compare);
    }
    uint64_t found = 0;
    for (int i = 0; i < NODES; i++)
        found += **(uint64_t **)tfind(&keys[i], &root, compare);
    return found;
}

// 24 bytes.
struct trie { struct trie *children[2]; uint64_t count; };

OWN static void insert_word(struct trie *at, uint64_t word) {
    for (int i = 0; i < 24; i++, word >>= 1) {
        struct trie **child = &at->children[word & 1];
        if (!*child)
            *child = calloc(1, sizeof **child);
        at = *child;
    }
    at->count++;
}

static uint64_t sum_trie(const struct trie *at) {
    uint64_t sum = at->count + 1;
    for (int i = 0; i < 2; i++)
        sum = sum * 3 + (at->children[i] ? sum_trie(at->children[i]) : 0);
    return sum;
}

static uint64_t trie(void) {
    struct trie root = {0};
    for (int i = 0; i < NODES / 8; i++)
        insert_word(&root, next_random());
    return sum_trie(&root);
}

// An entry of 24 bytes and its string of 32.
struct named { char *key; uint64_t value[2]; };

OWN static void fill_entry(struct named *entry, uint64_t key) {
    char *text = malloc(32);
    snprintf(text, 32, "key %llu", (unsigned long long)key);
    entry->key = text;
    entry->value[0] = key;
}

static uint64_t entry_and_string(void) {
    static struct named *entries[NODES / 2];
    for (int i = 0; i < NODES / 2; i++) {
        entries[i] = malloc(sizeof(struct named));
        fill_entry(entries[i], next_random());
        allocate_stranger();
    }
    uint64_t sum = 0;
    for (int i = 0; i < NODES / 2; i++)
        sum = sum * 7 + strlen(entries[i]->key);
    return sum;
}

// From here on: nothing is to be proposed. Nodes of 48 bytes: two do not fit a block.
struct wide { struct wide *left, *right; uint64_t key[4]; };

OWN static void insert_wide(struct wide **place, uint64_t key) {
    while (*place)
        place = key < (*place)->key[0] ? &(*place)->left : &(*place)->right;
    struct wide *node = calloc(1, sizeof *node);
    node->key[0] = key;
    *place = node;
}

static uint64_t wide(void) {
    struct wide *root = 0;
    for (int i = 0; i < NODES / 2; i++)
        insert_wide(&root, next_random());
    return root->key[0] ^ root->left->key[0];
}

OWN static struct tree *make_temporary(struct item *owner) {
    struct tree *tree = malloc(sizeof *tree);
    owner->next = (struct item *)tree;
    return tree;
}

static uint64_t short_lived(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 10 * NODES; i++) {
        struct item *owner = malloc(sizeof *owner);
        struct tree *tree = make_temporary(owner);
        tree->key = i;
        sum += ((struct tree *)owner->next)->key;
        free(tree);
        free(owner);
    }
    return sum;
}

// A tree of 24 KB that is built and freed again and again.
static void free_tree(struct tree *at) {
    if (at) {
        free_tree(at->left);
        free_tree(at->right);
        free(at);
    }
}

static uint64_t in_cache(void) {
    uint64_t sum = 0;
    for (int round = 0; round < 500; round++) {
        struct tree *root = 0;
        for (int i = 0; i < 1000; i++)
            insert_by_loop(&root, next_random());
        sum += sum_tree(root);
        free_tree(root);
    }
    return sum;
}

static uint64_t strings(void) {
    static char *texts[NODES];
    for (int i = 0; i < NODES; i++) {
        texts[i] = malloc(48);
        snprintf(texts[i], 48, "%llu", (unsigned long long)next_random());
    }
    uint64_t sum = 0;
    for (int i = 0; i < NODES; i++)
        sum = sum * 7 + texts[i][0];
    return sum;
}

// The nodes lie in chunks of a pool.
static uint64_t pool(void) {
    struct tree *chunk = 0, *root = 0;
    for (int i = 0; i < NODES; i++) {
        if (i % 2048 == 0)
            chunk = calloc(2048, sizeof *chunk);
        struct tree **place = &root, *node = &chunk[i % 2048];
        node->key = next_random();
        while (*place)
            place = node->key < (*place)->key ? &(*place)->left : &(*place)->right;
        *place = node;
    }
    return sum_tree(root);
}

int main(int count, char **arguments) {
    static const struct { const char *name; uint64_t (*run)(void); } modes[] = {
        {"loop", loop}, {"recursion", recursion}, {"front", front}, {"back", back},
        {"bucket", bucket}, {"adjacency", adjacency}, {"tsearch", library_tree}, {"trie", trie},
        {"string", entry_and_string}, {"wide", wide}, {"short", short_lived}, {"in_cache", in_cache},
        {"strings", strings}, {"pool", pool},
    };
    for (size_t i = 0; count == 2 && i < sizeof modes / sizeof *modes; i++) {
        if (!strcmp(arguments[1], modes[i].name)) {
            printf("%llu\n", (unsigned long long)modes[i].run());
            return 0;
        }
    }
    return 2;
}
