#include "api/special_ops.h"

#include "api/checked_receives.h"

namespace cluster::api {

std::unique_ptr<SpecialOps> make_special_ops(const EpOptions& options) {
  const bool checks_untagged = options.receives_need_checks(false);
  const bool checks_tagged = options.receives_need_checks(true);
  if (!checks_untagged && !checks_tagged) return nullptr;
  auto ops = std::make_unique<SpecialOps>(SpecialOps{msg_ops, tagged_ops});
  if (checks_untagged) checked::put_into<>(ops->msg);
  if (checks_tagged) checked::put_into<std::uint64_t, std::uint64_t>(ops->tagged);
  return ops;
}

}  // namespace cluster::api
