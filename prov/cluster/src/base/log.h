// Log lines go to libfabric's log, and in tests to a string. A warning names cause and remedy in one line.
// Info explains decisions, such as the choice of paths.
#pragma once

namespace cluster {

enum class LogLevel { warn, info };

class Log {
 public:
  virtual ~Log() = default;
  virtual bool enabled(LogLevel level) const = 0;
  virtual void write(LogLevel level, const char* line) = 0;

  void warn(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void info(const char* format, ...) __attribute__((format(printf, 2, 3)));
};

}  // namespace cluster
