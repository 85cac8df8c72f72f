// The ops tables of an endpoint whose capabilities or operation flags require a further check or a conversion
// in each call. For example, with the operation flag FI_TRIGGER, each call must become a triggered operation.
// The endpoint owns these tables. The endpoint builds them when it is opened, when it is enabled, and
// whenever its flags change. So the functions of the tables in ops_tables.h need not check these capabilities
// and flags. Only the atomic operations themselves check for FI_TRIGGER.
#pragma once

#include <memory>

#include "api/ep_options.h"
#include "api/ops_tables.h"

namespace cluster::api {

struct SpecialOps {
  fi_ops_msg msg;
  fi_ops_tagged tagged;
  fi_ops_rma rma;
  fi_ops_atomic atomic;
};

/// Returns the tables, or null if the tables in ops_tables.h serve an endpoint with these options.
std::unique_ptr<SpecialOps> make_special_ops(const EpOptions& options);

}  // namespace cluster::api
