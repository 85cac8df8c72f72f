#include "api/av_set.h"

#include <algorithm>
#include <cstring>

namespace cluster::api {
namespace {

constexpr std::uint64_t kOperationSets = FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET |
                                         FI_ALLREDUCE_SET | FI_ALLGATHER_SET | FI_REDUCE_SCATTER_SET |
                                         FI_REDUCE_SET | FI_SCATTER_SET | FI_GATHER_SET;

const AvSet& set_of(const fid_av_set* handle) { return static_cast<const AvSet&>(*handle); }

constinit fi_ops av_set_fid_ops = fid_ops({.close = close_object<AvSet>});

constinit fi_ops_av_set av_set_ops = {
    .size = sizeof(fi_ops_av_set),
    .set_union = Method<&AvSet::unite>::entry,
    .intersect = Method<&AvSet::intersect>::entry,
    .diff = Method<&AvSet::subtract>::entry,
    .insert = Method<&AvSet::insert>::entry,
    .remove = Method<&AvSet::remove>::entry,
    .addr = Method<&AvSet::address>::entry,
};

}  // namespace

AvSet::AvSet(Av& av, void* context)
    : fid_av_set{{FI_CLASS_AV_SET, context, &av_set_fid_ops}, &av_set_ops}, av_(av) {}

/// The attributes select the initial members. With FI_UNIVERSE, these are all handles of the address vector.
/// Without FI_UNIVERSE, they are the handles start_addr, start_addr + stride, ... up to end_addr that the
/// address vector contains, or none if start_addr is FI_ADDR_NOTAVAIL. Without attributes, the set begins
/// empty.
int AvSet::open(Av& av, fi_av_set_attr* attributes, fid_av_set** handle, void* context) {
  const fi_av_set_attr& wanted = attributes_at(attributes);
  if (wanted.flags & ~(kOperationSets | FI_UNIVERSE)) return -FI_EBADFLAGS;
  if (wanted.comm_key_size > sizeof(std::uint64_t)) return -FI_EINVAL;
  if (wanted.comm_key_size != 0 && wanted.comm_key == nullptr) return -FI_EINVAL;
  const bool universe = wanted.flags & FI_UNIVERSE;
  const bool empty = attributes == nullptr || (!universe && wanted.start_addr == FI_ADDR_NOTAVAIL);
  std::unique_ptr<AvSet> set(new AvSet(av, context));
  if (wanted.comm_key_size != 0) std::memcpy(&set->key_, wanted.comm_key, wanted.comm_key_size);
  const fi_addr_t end = av.address_table().handles_end();
  if (!empty) {
    const fi_addr_t first = universe ? 0 : wanted.start_addr;
    const fi_addr_t last = universe ? FI_ADDR_NOTAVAIL : wanted.end_addr;
    const std::uint64_t stride = universe ? 1 : wanted.stride;
    if (stride == 0 || first > last) return -FI_EINVAL;
    for (fi_addr_t each = first; each < end && each <= last; each += stride) {
      if (!av.address_table().lookup(each).empty()) set->members_.push_back(each);
      if (each > each + stride) break;
    }
  }
  *handle = set.release();
  return 0;
}

bool AvSet::contains(fi_addr_t address) const {
  return std::find(members_.begin(), members_.end(), address) != members_.end();
}

int AvSet::unite(const fid_av_set* other) {
  if (other == nullptr || set_of(other).av_.get() != av_.get()) return -FI_EINVAL;
  for (const fi_addr_t address : std::vector(set_of(other).members_)) {
    if (!contains(address)) members_.push_back(address);
  }
  return 0;
}

int AvSet::keep(const fid_av_set* other, bool common) {
  if (other == nullptr || set_of(other).av_.get() != av_.get()) return -FI_EINVAL;
  // `source` is a copy, because `other` and this set may be the same.
  const std::vector<fi_addr_t> source(set_of(other).members_);
  std::erase_if(members_, [&](fi_addr_t each) {
    return (std::find(source.begin(), source.end(), each) != source.end()) != common;
  });
  return 0;
}

int AvSet::insert(fi_addr_t address) {
  if (av_->address_table().lookup(address).empty() || contains(address)) return -FI_EINVAL;
  members_.push_back(address);
  return 0;
}

int AvSet::remove(fi_addr_t address) { return std::erase(members_, address) != 0 ? 0 : -FI_EINVAL; }

/// Sets `team` to an address that stands for the set. The application passes this address and the set to
/// fi_join_collective, which uses only the set.
int AvSet::address(fi_addr_t* team) {
  if (team == nullptr) return -FI_EINVAL;
  *team = reinterpret_cast<std::uintptr_t>(static_cast<fid_av_set*>(this));
  return 0;
}

}  // namespace cluster::api
