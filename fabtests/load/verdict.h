// Counts what held and what did not; each failure is one line on stdout that says what was
// expected.
#pragma once

#include <cstdio>

namespace load {

class Verdict {
 public:
  template <typename... Values>
  void expect(bool held, const char* format, Values... values) {
    ++checks_;
    if (held) return;
    ++failures_;
    std::printf("FAILED: ");
    std::printf(format, values...);
    std::printf("\n");
  }
  int checks() const { return checks_; }
  int failures() const { return failures_; }

 private:
  int checks_ = 0;
  int failures_ = 0;
};

}  // namespace load
