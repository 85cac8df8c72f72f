// Counts what held and what did not; each failure is one line on stdout that says what was
// expected.
#pragma once

#include <cstdarg>
#include <cstdio>

namespace load {

class Expectations {
 public:
  __attribute__((format(printf, 3, 4))) void expect(bool held, const char* format, ...) {
    ++checks_;
    if (held) return;
    ++failures_;
    va_list arguments;
    va_start(arguments, format);
    std::printf("FAILED: ");
    std::vprintf(format, arguments);
    std::printf("\n");
    va_end(arguments);
  }
  int checks() const { return checks_; }
  int failures() const { return failures_; }

 private:
  int checks_ = 0;
  int failures_ = 0;
};

}  // namespace load
