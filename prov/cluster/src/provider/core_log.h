// Log lines through libfabric's log. FI_LOG_LEVEL and FI_LOG_PROV select them; without FI_LOG_LEVEL nothing
// is written, not even warnings.
#pragma once

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <cerrno>

#include "base/log.h"

namespace cluster::provider {

class CoreLog final : public Log {
 public:
  explicit CoreLog(const fi_provider& provider) : provider_(provider) {}
  bool enabled(LogLevel level) const override {
    return fi_log_enabled(&provider_, level_of(level), FI_LOG_CORE) != 0;
  }
  void write(LogLevel level, const char* line) override {
    const int saved = errno;
    fi_log(&provider_, level_of(level), FI_LOG_CORE, "cluster", 0, "%s\n", line);
    errno = saved;
  }

 private:
  static fi_log_level level_of(LogLevel level) { return level == LogLevel::info ? FI_LOG_INFO : FI_LOG_WARN; }

  const fi_provider& provider_;
};

}  // namespace cluster::provider
