// The objects that fi_join returns (fid_mc): a multicast group, or a team for collective operations.
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>

#include <algorithm>
#include <memory>

#include "api/av_set.h"
#include "api/endpoint.h"
#include "api/ops_tables.h"
#include "collective/collectives.h"

namespace cluster::api {
namespace {

/// A multicast group. Its fi_addr is the destination for messages to the group. fi_close leaves the group.
/// Messages already sent to the group still arrive.
class Mc : public fid_mc, public RefCounted {
 public:
  using Handle = fid_mc;

  /// Implements fi_join for a group. The endpoint must be enabled.
  static int join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** handle,
                  void* context);
  ~Mc();

 private:
  Mc(Endpoint& endpoint, void* context);

  Ref<Endpoint> endpoint_;
};

/// A team, which fi_join_collective returns. Its fi_addr identifies the team in collective calls.
class CollectiveMc final : public fid_mc, public RefCounted, private collective::JoinListener {
 public:
  using Handle = fid_mc;

  /// Implements fi_join with FI_COLLECTIVE. The event queue gets an event when the join has succeeded or
  /// failed.
  static int join(Endpoint& endpoint, const void* plain, std::uint64_t flags, fid_mc** handle, void* context);
  ~CollectiveMc() { eq_.forget(fid); }
  /// Leaves the team and aborts its operations in progress. Returns -FI_EBUSY while a peer still reads a
  /// buffer of such an operation, or a member has not been notified of a failure of the team.
  int leave();

 private:
  CollectiveMc(Endpoint& endpoint, Eq& eq, void* context);
  void joined(Status status) override;

  Ref<Endpoint> endpoint_;
  Eq& eq_;  ///< the endpoint holds a reference to it
  collective::Team* team_ = nullptr;
};

constinit fi_ops mc_fid_ops = fid_ops({.close = close_object<Mc>});

/// Returns the key of a group. Members that join the same address compute the same key.
std::uint64_t key_of(const SocketAddress& address) {
  std::uint64_t key = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&key](std::uint8_t byte) { key = (key ^ byte) * 0x100000001b3; };
  for (const std::byte byte : address.ip()) mix(std::to_integer<std::uint8_t>(byte));
  mix(static_cast<std::uint8_t>(address.port()));
  mix(static_cast<std::uint8_t>(address.port() >> 8));
  return key;
}

/// Sets `role` to the roles that the flags name or, if they name none, to all roles that the endpoint can
/// have. Returns false if the endpoint cannot have one of the named roles.
bool role_of(std::uint64_t flags, std::uint64_t caps, group::Role& role) {
  role = {(caps & FI_SEND) != 0, (caps & FI_RECV) != 0};
  if ((flags & (FI_SEND | FI_RECV)) == 0) return true;
  const group::Role asked{(flags & FI_SEND) != 0, (flags & FI_RECV) != 0};
  const bool possible = (!asked.sends || role.sends) && (!asked.receives || role.receives);
  role = asked;
  return possible;
}

int close_team(fid* plain) noexcept {
  auto& object = object_of<CollectiveMc>(plain);
  if (object.inherited()) return 0;
  const int left = guarded([&] { return object.leave(); });
  return left == 0 ? close_object<CollectiveMc>(plain) : left;
}

constinit fi_ops team_fid_ops = fid_ops({.close = close_team});

/// Returns the members of the team in the order of the set. Sets `self` to the position of this endpoint
/// among them.
std::vector<collective::MemberAddress> members_of(AvSet& set, const SocketAddress& own,
                                                  collective::Member& self) {
  std::vector<collective::MemberAddress> members;
  for (const fi_addr_t handle : set.members()) {
    members.push_back({handle, set.av().address_table().lookup(handle)});
    if (members.back().name == own) self = static_cast<collective::Member>(members.size() - 1);
  }
  return members;
}

Mc::Mc(Endpoint& endpoint, void* context)
    : fid_mc{{FI_CLASS_MC, context, &mc_fid_ops}, FI_ADDR_NOTAVAIL}, endpoint_(endpoint) {}

Mc::~Mc() {
  if (fi_addr != FI_ADDR_NOTAVAIL) endpoint_->engine()->change_membership(nullptr, fi_addr);
  endpoint_->bound().eq()->forget(fid);
}

int Mc::join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** handle, void* context) {
  if (handle == nullptr || address == nullptr) return -FI_EINVAL;
  if (flags & ~(FI_SEND | FI_RECV)) return -FI_EBADFLAGS;
  const auto* plain = static_cast<const sockaddr*>(address);
  const std::size_t size = plain->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  engine::JoinOp op{.address = SocketAddress::from(plain, size), .role = {}};
  if (!op.address.multicast() || op.address.port() == 0) return -FI_EINVAL;
  if (!role_of(flags, endpoint.options().caps(), op.role)) return -FI_EOPNOTSUPP;
  if (endpoint.engine() == nullptr) return -FI_EOPBADSTATE;
  if (!(endpoint.options().caps() & FI_MULTICAST)) return -FI_EOPNOTSUPP;
  if (endpoint.bound().eq() == nullptr) return -FI_ENOEQ;
  op.key = key_of(op.address);
  auto group = std::unique_ptr<Mc>(new Mc(endpoint, context));
  op.context = &group->fid;
  const Status status = endpoint.engine()->change_membership(&op, group->fi_addr);
  if (status != Status::ok) return -fi_errno_of(status);
  *handle = group.release();
  return 0;
}

CollectiveMc::CollectiveMc(Endpoint& endpoint, Eq& eq, void* context)
    : fid_mc{{FI_CLASS_MC, context, &team_fid_ops}, FI_ADDR_NOTAVAIL}, endpoint_(endpoint), eq_(eq) {}

int CollectiveMc::join(Endpoint& endpoint, const void* plain, std::uint64_t flags, fid_mc** handle,
                       void* context) {
  if (!(endpoint.options().caps() & FI_COLLECTIVE)) return -FI_EOPNOTSUPP;
  if (plain == nullptr) return -FI_EINVAL;
  const auto& address = *static_cast<const fi_collective_addr*>(plain);
  if (flags & ~(FI_COLLECTIVE | FI_SEND | FI_RECV)) return -FI_EBADFLAGS;
  if (endpoint.engine() == nullptr) return -FI_EOPBADSTATE;
  if (address.set == nullptr || handle == nullptr) return -FI_EINVAL;
  Eq* const eq = endpoint.bound().eq();
  if (eq == nullptr) return -FI_ENOEQ;
  auto& set = object_of<AvSet>(const_cast<fid_av_set*>(address.set));
  if (&set.av() != &endpoint.bound().av()) return -FI_EINVAL;
  collective::Member self = collective::kNoMember;
  std::vector<collective::MemberAddress> members = members_of(set, endpoint.engine()->name(), self);
  const bool known =
      std::none_of(members.begin(), members.end(),
                   [](const collective::MemberAddress& member) { return member.name.empty(); });
  if (self == collective::kNoMember || !known || members.size() > collective::kMembersMax) return -FI_EINVAL;
  std::unique_ptr<CollectiveMc> mc(new CollectiveMc(endpoint, *eq, context));
  endpoint.engine()->with_collectives([&](collective::Collectives& collectives) {
    mc->team_ = &collectives.create(std::move(members), self, set.key());
    mc->fi_addr = mc->team_->id();
    // The handle is set before the join, because the event refers to the handle, and another thread may read
    // the event before this call returns.
    *handle = mc.get();
    collectives.join(*mc->team_, *mc);
  });
  mc.release();
  return 0;
}

int CollectiveMc::leave() {
  const Status status = endpoint_->engine()->with_collectives(
      [&](collective::Collectives& collectives) { return collectives.leave(*team_); });
  return status == Status::ok ? 0 : -FI_EBUSY;
}

void CollectiveMc::joined(Status status) {
  if (status == Status::ok) {
    const fi_eq_entry entry{&fid, fid.context, 0};
    eq_.report(FI_JOIN_COMPLETE, fid, &entry, sizeof entry);
  } else {
    eq_.report_error(fid, status);
  }
}

}  // namespace

int join(fid_ep* handle, const void* address, std::uint64_t flags, fid_mc** mc, void* context) noexcept {
  return guarded([&] {
    Endpoint& endpoint = endpoint_of(handle);
    return (flags & FI_COLLECTIVE) ? CollectiveMc::join(endpoint, address, flags, mc, context)
                                   : Mc::join(endpoint, address, flags, mc, context);
  });
}

}  // namespace cluster::api
