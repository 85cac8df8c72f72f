// The known system with one rank: the solution is right, and so is what the two roundings say of it. A
// system that no double can solve has no exact digits, and they say so.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gauss_rounded.h"

enum { kOrder = 120, kHilbert = 14 };

static int failures;

static void check(int good, const char* what, double figure) {
  if (good) return;
  printf("FAIL: %s: %g\n", what, figure);
  ++failures;
}

static void nobody(void* context, double* message, int count, int root) {
  (void)context, (void)message, (void)count, (void)root;
}

static double hilbert(int row, int column) { return 1.0 / (row + column + 1); }

static struct gauss_result solve(double (*of)(int row, int column), int order) {
  double* const message = malloc(sizeof(double) * (size_t)gauss_message_numbers(order));
  if (!message) abort();
  const struct gauss_problem problem = {order, 0, 1, of, nobody, NULL, message};
  const struct gauss_result result = gauss_rounded(&problem);
  free(message);
  return result;
}

int main(void) {
  struct gauss_result known = solve(gauss_known_element, kOrder), hopeless = solve(hilbert, kHilbert);
  check(gauss_tell(&known), "the solution", known.worst_error);
  check(known.digits > 8 && known.digits < 14.9, "exact digits", known.digits);
  check(known.exchanges == 2 * kOrder, "exchanges", (double)known.exchanges);
  check(known.bytes == 16.0 * kOrder * (kOrder + 1), "bytes", known.bytes);
  check(known.largest == 16.0 * kOrder, "largest message", known.largest);
  check(hopeless.worst_error > 1e-3 && hopeless.least_digits < 3, "digits of a solution that is wrong",
        hopeless.least_digits);
  check(!gauss_tell(&hopeless), "a solution that is wrong passes", hopeless.worst_error);
  check(gauss_common_digits(1, 1) == 15, "digits of equals", gauss_common_digits(1, 1));
  check(gauss_common_digits(1, -1) == 0, "digits of opposites", gauss_common_digits(1, -1));
  check(fabs(gauss_common_digits(1, 1 + 1e-9) - 8.197) < 0.01, "digits of near ones",
        gauss_common_digits(1, 1 + 1e-9));
  puts(failures ? "FAIL gauss_test" : "PASS gauss_test");
  return failures != 0;
}
