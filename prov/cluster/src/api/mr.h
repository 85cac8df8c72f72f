// A memory region: a fid_mr around a row of the domain's table of what peers may touch. Nothing is
// pinned and no page is looked at; a region may be all memory there is. Descriptors are null.
#pragma once

#include <rdma/fi_domain.h>

#include "api/domain.h"

namespace cluster::api {

class Cntr;

class Mr : public fid_mr {
 public:
  using Handle = fid_mr;

  static int open(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags, fid_mr** handle);
  ~Mr();

  int bind(fid_t object, std::uint64_t flags);
  /// The remote address of its first byte.
  std::uint64_t start() const { return start_; }

 private:
  Mr(Domain& domain, void* context) noexcept;
  void bind_counter(Ref<Cntr>& place, Cntr& cntr);

  Ref<Domain> domain_;
  Ref<Cntr> reads_;
  Ref<Cntr> writes_;
  std::uint64_t start_ = 0;
  bool listed_ = false;  ///< in the table: peers may touch it
};

}  // namespace cluster::api
