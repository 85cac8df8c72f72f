// FI_AV_USER_ID: completions name the sender by a number that the application has chosen. fi_av(3)
#include "fabric.h"

namespace conformance {
namespace {

constexpr fi_addr_t kFirst = 0xabcdef0123456789;

/// What libfabric 1.20 appended to fi_ops_av.
struct NewerAvOps {
  fi_ops_av first;
  int (*insert_auth_key)(fid_av*, const void*, std::size_t, fi_addr_t*, std::uint64_t);
  int (*lookup_auth_key)(fid_av*, fi_addr_t, void*, std::size_t*);
  int (*set_user_id)(fid_av*, fi_addr_t, fi_addr_t, std::uint64_t);
};

int set_user_id(fid_av* av, fi_addr_t handle, fi_addr_t id) {
  if (av->ops->size < sizeof(NewerAvOps)) return -FI_ENOSYS;
  return reinterpret_cast<NewerAvOps*>(av->ops)->set_user_id(av, handle, id, 0);
}

/// Each side sends one message of this size, and expects this source of the other's.
void exchange(Team& team, std::size_t size, fi_addr_t expected) {
  Endpoint& e = team.endpoint;
  std::vector<unsigned char> in(size);
  const std::vector<unsigned char> out(size);
  int sent = 0;
  int received = 0;
  e.must([&] { return fi_trecv(e.ep(), in.data(), size, nullptr, team.peer(), 1, 0, &received); });
  team.meet();
  e.must([&] { return fi_tsend(e.ep(), out.data(), size, nullptr, team.peer(), 1, &sent); });
  e.finish(&sent);
  EXPECT_EQ(e.finish(&received).source, expected) << size;
  team.meet();
}

PAIR_TEST(UserId, AnInsertionMayGiveItsAddressAnIdentifier) {
  Options options;
  options.caps = FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
  Team team(side, options);
  for (const std::size_t size : {8u, 100000u}) exchange(team, size, team.peer());
  const Blob& name = team.names[static_cast<std::size_t>(1 - side.index())];
  fi_addr_t handle = kFirst;
  ASSERT_EQ(fi_av_insert(team.endpoint.domain().av(), name.data(), 1, &handle, FI_AV_USER_ID, nullptr), 1);
  EXPECT_EQ(handle, team.peer()) << "operations take the handle";
  for (const std::size_t size : {8u, 100000u}) exchange(team, size, kFirst);
}

PAIR_TEST(UserId, AnAddressVectorWithIdentifiersReportsNothingElse) {
  Options options;
  options.caps = FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV;
  options.av_flags = FI_AV_USER_ID;
  Team team(side, options);
  exchange(team, 8, FI_ADDR_NOTAVAIL);
  ASSERT_EQ(set_user_id(team.endpoint.domain().av(), team.peer(), kFirst), 0);
  for (const std::size_t size : {8u, 100000u}) exchange(team, size, kFirst);
  ASSERT_EQ(set_user_id(team.endpoint.domain().av(), team.peer(), kFirst + 1), 0);
  exchange(team, 8, kFirst + 1);
  EXPECT_EQ(set_user_id(team.endpoint.domain().av(), 1000, 1), -FI_EINVAL);
}

}  // namespace
}  // namespace conformance
