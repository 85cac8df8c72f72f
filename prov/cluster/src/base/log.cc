#include "base/log.h"

#include <cstdarg>
#include <cstdio>

namespace cluster {
namespace {

constexpr int kLineMax = 512;

void format_line(Log& log, LogLevel level, const char* format, va_list arguments) {
  if (!log.enabled(level)) return;
  char line[kLineMax];
  std::vsnprintf(line, sizeof line, format, arguments);
  log.write(level, line);
}

}  // namespace

void Log::warn(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  format_line(*this, LogLevel::warn, format, arguments);
  va_end(arguments);
}

void Log::info(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  format_line(*this, LogLevel::info, format, arguments);
  va_end(arguments);
}

}  // namespace cluster
