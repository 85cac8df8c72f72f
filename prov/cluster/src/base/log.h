// Log lines go to whoever assembled the environment (libfabric's log in production, a string in
// tests). A warning names cause and cure in one line; info explains decisions such as paths.
#pragma once

namespace cluster {

enum class LogLevel { warn, info, debug };

class Log {
 public:
  virtual ~Log() = default;
  virtual bool enabled(LogLevel level) const = 0;
  virtual void write(LogLevel level, const char* line) = 0;

  void warn(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void info(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void debug(const char* format, ...) __attribute__((format(printf, 2, 3)));
};

}  // namespace cluster
