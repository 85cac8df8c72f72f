// Gauss elimination whose numbers are carried with two roundings, as CADNA does it: each operation is done
// twice, rounded up for one of the two and down for the other, at random. Where the two results agree, the
// digits are exact. Columns are dealt out in turn, and what a column says is broadcast.
#ifndef GAUSS_ROUNDED_H
#define GAUSS_ROUNDED_H

#ifdef __cplusplus
extern "C" {
#endif

// The solution of the system is 1, 2, 3...
struct gauss_problem {
  int order, rank, size;
  double (*element)(int row, int column);
  // Takes the numbers of the message from the root to all others.
  void (*broadcast)(void* context, double* message, int count, int root);
  void* context;
  double* message;  // room for gauss_message_numbers(order)
};

struct gauss_result {
  int order, ranks;
  double seconds, seconds_talking;  // the second is that of the broadcasts, with the wait for their root
  long exchanges;
  double bytes, largest;  // of all messages, and of the largest
  double worst_error;     // relative, of any unknown
  double digits;          // that the two roundings say are exact: average, and least of any unknown
  double least_digits;
  double overclaimed;  // share of the unknowns that have fewer exact digits than that
};

// Of the system of known_system.h.
double gauss_known_element(int row, int column);
int gauss_message_numbers(int order);
struct gauss_result gauss_rounded(const struct gauss_problem* problem);
// How many digits the two samples of a number have in common, by CADNA's rule for 95 %.
double gauss_common_digits(double one, double other);
// A line of JSON. Returns whether the solution is right, and what the two roundings said of it.
int gauss_tell(const struct gauss_result* result);

#ifdef __cplusplus
}
#endif

#endif
