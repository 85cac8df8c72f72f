// A dense system of equations whose solution is known: what the Gauss eliminations here
// solve. Its elements lie between -0.5 and 0.5, and are the same in each run.
#ifndef KNOWN_SYSTEM_H
#define KNOWN_SYSTEM_H

static inline double element(int row, int column) {
  unsigned long long z = (unsigned long long)row * 1000003u + (unsigned long long)column + 12345u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0 - 0.5;
}

// The right side belongs to the solution 1, 2, 3...
static inline double right_side(int row, int columns) {
  double sum = 0;
  for (int column = 0; column < columns; ++column) sum += element(row, column) * (column + 1);
  return sum;
}

#endif
