#include "gauss_rounded.h"

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../mpi/apps/known_system.h"

static const double kMostDigits = 15, kStudent = 12.706;  // for two samples and 95 %
static const double kErrorMost = 1e-6, kOverclaimedMost = 0.1;
static const uint64_t kSign = (uint64_t)1 << 63;

// The two samples of a number.
struct number {
  double one, other;
};

struct solver {
  const struct gauss_problem* problem;
  struct gauss_result result;
  struct number** columns;  // column j lives at rank j % size; NULL elsewhere
  struct number* right;     // side, at every rank
  struct number* message;   // which row and 0, or an unknown; behind it those of a column
  uint64_t random;
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double flipped(double value, uint64_t sign) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits ^= sign;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

static uint64_t next(struct solver* s) {
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  return s->random;
}

// The processor rounds up. The opposite of what the opposite gives is rounded down: no operation changes the
// processor's mode, which would take longer than the operation.
static double product(double a, double b, uint64_t sign) { return flipped(flipped(a, sign) * b, sign); }
static double quotient(double a, double b, uint64_t sign) { return flipped(flipped(a, sign) / b, sign); }
static double difference(double a, double b, uint64_t sign) {
  return flipped(flipped(a, sign) - flipped(b, sign), sign);
}

static struct number divide(struct solver* s, struct number a, struct number b) {
  const uint64_t sign = next(s) & kSign;
  return (struct number){quotient(a.one, b.one, sign), quotient(a.other, b.other, sign ^ kSign)};
}

// a - b * c
static struct number subtract_product(uint64_t random, struct number a, struct number b, struct number c) {
  const uint64_t first = random & kSign, second = (random << 1) & kSign;
  return (struct number){difference(a.one, product(b.one, c.one, first), second),
                         difference(a.other, product(b.other, c.other, first ^ kSign), second ^ kSign)};
}

static double size_of(struct number a) { return fabs(a.one + a.other); }

double gauss_common_digits(double one, double other) {
  const double apart = fabs(one - other);
  if (apart == 0) return kMostDigits;
  const double digits = log10(fabs(one + other) / (apart * kStudent));
  return digits > kMostDigits ? kMostDigits : digits > 0 ? digits : 0;
}

static struct number* numbers(int count) {
  struct number* const made = malloc(sizeof *made * (size_t)count);
  if (!made) abort();
  return made;
}

double gauss_known_element(int row, int column) { return element(row, column); }

int gauss_message_numbers(int order) { return 2 * (order + 1); }

// The right side has the roundings of its own sum.
static void set_up(struct solver* s) {
  const struct gauss_problem* const p = s->problem;
  s->columns = calloc((size_t)p->order, sizeof *s->columns);
  if (!s->columns) abort();
  s->right = numbers(p->order);
  for (int row = 0; row < p->order; ++row) {
    struct number sum = {0, 0};
    for (int column = 0; column < p->order; ++column) {
      const double coefficient = p->element(row, column), unknown = -(column + 1);
      sum = subtract_product(next(s), sum, (struct number){coefficient, coefficient},
                             (struct number){unknown, unknown});
    }
    s->right[row] = sum;
  }
  for (int column = p->rank; column < p->order; column += p->size) {
    s->columns[column] = numbers(p->order);
    for (int row = 0; row < p->order; ++row) {
      const double coefficient = p->element(row, column);
      s->columns[column][row] = (struct number){coefficient, coefficient};
    }
  }
}

static void tear_down(struct solver* s) {
  for (int column = 0; column < s->problem->order; ++column) free(s->columns[column]);
  free(s->columns);
  free(s->right);
}

static void broadcast(struct solver* s, int count, int root) {
  const double begun = now(), bytes = (double)count * sizeof(struct number);
  s->problem->broadcast(s->problem->context, (double*)s->message, 2 * count, root);
  s->result.seconds_talking += now() - begun;
  ++s->result.exchanges;
  s->result.bytes += bytes;
  if (bytes > s->result.largest) s->result.largest = bytes;
}

static void swap(struct number* column, int a, int b) {
  const struct number kept = column[a];
  column[a] = column[b];
  column[b] = kept;
}

// The pivot's row goes to the front of the message, the multipliers of the rows below behind it.
static void choose_pivot(struct solver* s, struct number* column, int from) {
  int best = from;
  for (int row = from + 1; row < s->problem->order; ++row) {
    if (size_of(column[row]) > size_of(column[best])) best = row;
  }
  swap(column, from, best);
  s->message[0] = (struct number){best, 0};
  for (int row = from + 1; row < s->problem->order; ++row)
    s->message[row - from] = divide(s, column[row], column[from]);
}

static void eliminate_in(struct solver* s, struct number* column, int from) {
  swap(column, from, (int)s->message[0].one);
  const struct number factor = column[from];
  for (int row = from + 1; row < s->problem->order; ++row)
    column[row] = subtract_product(next(s), column[row], s->message[row - from], factor);
}

static void eliminate(struct solver* s) {
  const struct gauss_problem* const p = s->problem;
  for (int column = 0; column < p->order; ++column) {
    const int owner = column % p->size;
    if (p->rank == owner) choose_pivot(s, s->columns[column], column);
    broadcast(s, p->order - column, owner);
    eliminate_in(s, s->right, column);
    for (int own = p->rank; own < p->order; own += p->size) {
      if (own > column) eliminate_in(s, s->columns[own], column);
    }
  }
}

static void judge(struct gauss_result* result, struct number unknown, double truth) {
  const double error = fabs((unknown.one + unknown.other) / 2 - truth) / truth;
  const double digits = gauss_common_digits(unknown.one, unknown.other);
  if (!(error <= result->worst_error)) result->worst_error = error;
  if (digits < result->least_digits) result->least_digits = digits;
  result->digits += digits / result->order;
  if (digits > 0 && !(error <= pow(10, -digits))) result->overclaimed += 1.0 / result->order;
}

// From the last unknown to the first: each is broadcast, and behind it what stands above the diagonal in its
// column.
static void substitute(struct solver* s, struct number* unknowns) {
  const struct gauss_problem* const p = s->problem;
  for (int column = p->order - 1; column >= 0; --column) {
    const int owner = column % p->size;
    if (p->rank == owner) {
      s->message[0] = divide(s, s->right[column], s->columns[column][column]);
      for (int row = 0; row < column; ++row) s->message[row + 1] = s->columns[column][row];
    }
    broadcast(s, column + 1, owner);
    unknowns[column] = s->message[0];
    for (int row = 0; row < column; ++row)
      s->right[row] = subtract_product(next(s), s->right[row], s->message[row + 1], unknowns[column]);
  }
}

struct gauss_result gauss_rounded(const struct gauss_problem* problem) {
  const int before = fegetround();
  struct solver s = {.problem = problem, .random = 88172645463325252u};
  s.result =
      (struct gauss_result){.order = problem->order, .ranks = problem->size, .least_digits = kMostDigits};
  s.message = (struct number*)problem->message;
  struct number* const unknowns = numbers(problem->order);
  fesetround(FE_UPWARD);
  set_up(&s);
  problem->broadcast(problem->context, problem->message, 2, 0);  // all begin together
  const double begun = now();
  eliminate(&s);
  substitute(&s, unknowns);
  s.result.seconds = now() - begun;
  fesetround(before);
  for (int row = 0; row < problem->order; ++row) judge(&s.result, unknowns[row], row + 1);
  tear_down(&s);
  free(unknowns);
  return s.result;
}

int gauss_tell(const struct gauss_result* result) {
  const int good = result->worst_error < kErrorMost && result->overclaimed <= kOverclaimedMost;
  printf("{\"order\": %d, \"ranks\": %d, \"seconds\": %.6f, \"seconds_talking\": %.6f, \"exchanges\": %ld, ",
         result->order, result->ranks, result->seconds, result->seconds_talking, result->exchanges);
  printf(
      "\"bytes\": %.0f, \"largest\": %.0f, \"worst_error\": %.1e, \"digits\": %.2f, \"least_digits\": %.2f, ",
      result->bytes, result->largest, result->worst_error, result->digits, result->least_digits);
  printf("\"overclaimed\": %.3f, \"right\": %s}\n", result->overclaimed, good ? "true" : "false");
  fflush(stdout);
  return good;
}
