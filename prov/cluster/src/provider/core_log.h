// Log lines through libfabric's log. FI_LOG_LEVEL and FI_LOG_PROV select them; without FI_LOG_LEVEL nothing
// is written, not even warnings.
#pragma once

#include <rdma/providers/fi_prov.h>

#include "base/log.h"

namespace cluster::provider {

class CoreLog final : public Log {
 public:
  explicit CoreLog(const fi_provider& provider) : provider_(provider) {}
  bool enabled(LogLevel level) const override;
  void write(LogLevel level, const char* line) override;

 private:
  const fi_provider& provider_;
};

}  // namespace cluster::provider
