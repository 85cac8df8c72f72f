#include "provider/core_log.h"

#include <rdma/providers/fi_log.h>

#include <cerrno>

namespace cluster::provider {
namespace {

fi_log_level level_of(LogLevel level) {
  switch (level) {
    case LogLevel::warn: return FI_LOG_WARN;
    case LogLevel::info: return FI_LOG_INFO;
  }
  return FI_LOG_WARN;
}

}  // namespace

bool CoreLog::enabled(LogLevel level) const {
  return fi_log_enabled(&provider_, level_of(level), FI_LOG_CORE) != 0;
}

void CoreLog::write(LogLevel level, const char* line) {
  const int saved = errno;
  fi_log(&provider_, level_of(level), FI_LOG_CORE, "cluster", 0, "%s\n", line);
  errno = saved;
}

}  // namespace cluster::provider
