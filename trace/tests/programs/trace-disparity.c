// The depth of a scene from two images, as the program of MadT's use case: listing 1.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int width, height;
    float data[];
} F2D;
typedef struct {
    int width, height;
    int data[];
} I2D;

#define subsref(a, i, j) a->data[(i) * a->width + (j)]
#define ROWS 10
#define COLUMNS 13
#define LEVELS 4

F2D *fMallocHandle(int rows, int columns) {
    F2D *out = malloc(sizeof(F2D) + rows * columns * sizeof(float));
    out->height = rows;
    out->width = columns;
    return out;
}

I2D *iMallocHandle(int rows, int columns) {
    I2D *out = malloc(sizeof(I2D) + rows * columns * sizeof(int));
    out->height = rows;
    out->width = columns;
    return out;
}

void findDisparity(F2D *retSAD, F2D *minSAD, I2D *retDisp, int level, int nr, int nc) {
    int i, j;
    float a, b;
    for (i = 0; i < nr; i++) {
        for (j = 0; j < nc; j++) {
            a = subsref(retSAD, i, j);
            b = subsref(minSAD, i, j);
            if (a < b) {
                subsref(minSAD, i, j) = a;
                subsref(retDisp, i, j) = level;
            }
        }
    }
}

int main(void) {
    I2D *left = iMallocHandle(ROWS, COLUMNS), *right = iMallocHandle(ROWS, COLUMNS);
    F2D *minSAD = fMallocHandle(ROWS, COLUMNS), *retSAD = fMallocHandle(ROWS, COLUMNS);
    I2D *retDisp = iMallocHandle(ROWS, COLUMNS);
    // A wall two columns nearer than what is behind it.
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            subsref(left, i, j) = (i * 31 + j * 17) % 23;
            subsref(right, i, j) = (i * 31 + (j + (j > 5 ? 2 : 1)) * 17) % 23;
            subsref(minSAD, i, j) = 1e9f;
        }
    memset(retDisp->data, 0, ROWS * COLUMNS * sizeof(int));
    int updates = 0;
    for (int level = 0; level < LEVELS; level++) {
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                float sum = 0;
                for (int k = -1; k <= 1; k++) {
                    int at = j + k < 0 ? 0 : j + k >= COLUMNS ? COLUMNS - 1 : j + k;
                    int from = at + level >= COLUMNS ? COLUMNS - 1 : at + level;
                    int one = subsref(left, i, from) - subsref(right, i, at);
                    sum += one * one;
                }
                subsref(retSAD, i, j) = sum;
            }
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                updates += subsref(retSAD, i, j) < subsref(minSAD, i, j);
        findDisparity(retSAD, minSAD, retDisp, level, ROWS, COLUMNS);
    }
    int sum = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        sum += retDisp->data[i];
    // How often a pixel came nearer.
    printf("%d, updates %d\n", sum, updates);
    return 0;
}
