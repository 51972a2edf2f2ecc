// Memory with names, and a mistake.
#include <stdlib.h>
#include <string.h>

struct point {
    long x, y, z;
};
int limits[3] = {1, 2, 3};

struct point *make(void) {
    struct point *point = malloc(sizeof(struct point));
    point->x = 1;
    point->y = 2;
    point->z = 3;
    return point;
}

int sum(void) {
    int all = 0;
    for (int i = 0; i < 3; i++)
        all += limits[i];
    return all;
}

int main(void) {
    struct point *point = make(), copy;
    int *zeros = calloc(100, sizeof(int));
    volatile size_t len = sizeof copy;
    memcpy(&copy, point, len);
    int all = sum() + zeros[3] + (int)copy.x;
    free(point);
    // After the end of its life.
    all += (int)point->z;
    return all > 100;
}
