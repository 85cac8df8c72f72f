// The interface of the log. provider/ writes the lines to libfabric's log, and tests write them to a string.
// A warning names the cause and the remedy in one line. An info line explains a decision, such as the choice
// of a path.
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
