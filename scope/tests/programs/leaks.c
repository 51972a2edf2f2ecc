/* Small programs with and without leaks, by number: LeakSanitizer says the same of each. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

struct node {
  struct node *next, *other;
  long value;
};

static void *volatile kept;
static void **volatile table;
static struct node *volatile list;
static __thread void *volatile of_thread;
static pthread_key_t key;
static int pipes[2];

/* Overwrites what calls before have left on the stack. */
static APART void clear(void) {
  volatile char bytes[16384];
  memset((void *)bytes, 0, sizeof bytes);
}

static APART struct node *node(struct node *next) {
  struct node *made = calloc(1, sizeof *made);
  made->next = next;
  return made;
}

static APART void lose(size_t size) {
  volatile char *lost = malloc(size);
  lost[0] = 1;
}

static APART void lose_chain(int len) {
  struct node *first = NULL;
  for (int at = 0; at < len; at++) first = node(first);
  *(struct node *volatile *)&first = NULL;
}

static APART void lose_circle(void) {
  struct node *a = node(NULL), *b = node(a);
  a->next = b;
}

static APART void lose_own_circle(void) {
  struct node *a = node(NULL);
  a->next = a;
}

static APART void lose_head_of_kept(void) {
  struct node *head = node(NULL);
  head->next = list = node(NULL);
}

static APART void keep_interior(void) { kept = (char *)malloc(100) + 50; }

static APART void keep_past_the_end(void) { kept = (char *)malloc(96) + 96; }

static APART void keep_hidden(void) { kept = (void *)~(uintptr_t)malloc(80); }

static APART void keep_unaligned(void) {
  static char bytes[64];
  void *made = malloc(72);
  memcpy(bytes + 3, &made, sizeof made);
  asm volatile("" : : "r"(bytes) : "memory");
}

static APART void lose_some_of_a_table(void) {
  table = calloc(10, sizeof *table);
  for (int at = 0; at < 10; at++) table[at] = malloc(40 + at);
  for (int at = 0; at < 10; at += 2) table[at] = NULL;
}

static APART void grow_and_lose(void) {
  char *text = malloc(10);
  text = realloc(text, 1000);
  text[0] = 1;
}

static void *wait_with_stack(void *unused) {
  void *volatile held = malloc(333);
  char byte;
  if (write(pipes[1], "x", 1) == 1) pause();
  byte = *(char *)held;
  return byte ? unused : NULL;
}

static void *wait_with_variable(void *unused) {
  of_thread = malloc(444);
  clear();
  if (write(pipes[1], "x", 1) == 1) pause();
  return unused;
}

static void *wait_with_key(void *unused) {
  pthread_setspecific(key, malloc(555));
  clear();
  if (write(pipes[1], "x", 1) == 1) pause();
  return unused;
}

static void *lose_and_end(void *unused) {
  lose(222);
  of_thread = malloc(111);
  return unused;
}

static void run_thread(void *(*work)(void *), int waits) {
  pthread_t thread;
  char byte;
  pthread_create(&thread, NULL, work, NULL);
  if (!waits) {
    pthread_join(thread, NULL);
  } else if (read(pipes[0], &byte, 1) != 1) {
    abort();
  }
}

static void free_at_exit(void) { free(kept); }

int main(int count, char **words) {
  int number = count > 1 ? atoi(words[1]) : 0;
  if (pipe(pipes)) return 2;
  pthread_key_create(&key, NULL);
  switch (number) {
    case 0: break;
    case 1: lose(24); break;
    case 2: for (int at = 0; at < 100; at++) lose(1 + at); break;
    case 3: kept = malloc(64); break;
    case 4: lose_chain(20); break;
    case 5: for (int at = 0; at < 20; at++) list = node(list); break;
    case 6: lose_circle(); break;
    case 7: lose_own_circle(); break;
    case 8: lose_head_of_kept(); break;
    case 9: keep_interior(); break;
    case 10: keep_past_the_end(); break;
    case 11: keep_hidden(); break;
    case 12: keep_unaligned(); break;
    case 13: lose_some_of_a_table(); break;
    case 14: grow_and_lose(); break;
    case 15: run_thread(wait_with_stack, 1); break;
    case 16: run_thread(wait_with_variable, 1); break;
    case 17: run_thread(wait_with_key, 1); break;
    case 18: run_thread(lose_and_end, 0); break;
    case 19: kept = malloc(70); atexit(free_at_exit); break;
    case 20: of_thread = malloc(90); break;
    case 21: setenv("A_NAME", "a value that is long enough", 1); puts("text"); break;
    case 22: lose(1 << 20); lose(40); lose(56); lose(120); break;
    case 23: { FILE *file = fopen("/dev/null", "w"); fputs("x", file); kept = file; } break;
  }
  clear();
  exit(0);
}
