// FI_EP_DGRAM: a message is a frame, arrives whole or not at all, and is complete when it has left.
// Here it always arrives: never is more than one under way. fi_endpoint(3)
#include "fabric.h"

namespace conformance {
namespace {

Options datagrams() {
  Options options;
  options.type = FI_EP_DGRAM;
  options.caps = FI_MSG | FI_SOURCE;
  return options;
}

PAIR_TEST(Datagram, EverySizeUpToTheLimitGoesThereAndBack) {
  Team team(side, datagrams());
  Endpoint& e = team.endpoint;
  const std::size_t limit = e.domain().info()->ep_attr->max_msg_size;
  ASSERT_GE(limit, 1280u - 100);
  int in = 0;
  int out = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{1000}, limit}) {
    SCOPED_TRACE(size);
    std::vector<unsigned char> buffer(size);
    e.must([&] { return fi_recv(e.ep(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, &in); });
    team.meet();
    const auto data = pattern(size, size);
    const auto send = [&] {
      e.must([&] { return fi_senddata(e.ep(), data.data(), size, nullptr, size + 1, team.peer(), &out); });
      EXPECT_EQ(e.finish(&out).entry.flags, std::uint64_t{FI_MSG | FI_SEND});
    };
    if (side.first()) send();
    const Outcome outcome = e.finish(&in);
    EXPECT_EQ(outcome.entry.len, size);
    EXPECT_EQ(outcome.entry.data, size + 1);
    EXPECT_EQ(outcome.entry.flags, std::uint64_t{FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA});
    EXPECT_EQ(outcome.source, team.peer());
    EXPECT_TRUE(has_pattern(buffer, size));
    if (!side.first()) send();
  }
}

PAIR_TEST(Datagram, MayComeBeforeItsReceive) {
  Team team(side, datagrams());
  Endpoint& e = team.endpoint;
  const auto data = pattern(40, 1);
  if (side.first()) e.must([&] { return fi_inject(e.ep(), data.data(), data.size(), team.peer()); });
  team.meet();
  if (side.first()) return;
  std::vector<unsigned char> buffer(40);
  int in = 0;
  e.must([&] { return fi_recv(e.ep(), buffer.data(), 40, nullptr, FI_ADDR_UNSPEC, &in); });
  e.finish(&in);
  EXPECT_TRUE(has_pattern(buffer, 1));
}

PAIR_TEST(Datagram, TakesNothingThatDoesNotFitIntoAFrame) {
  Team team(side, datagrams());
  Endpoint& e = team.endpoint;
  const std::vector<unsigned char> data(e.domain().info()->ep_attr->max_msg_size + 1);
  int out = 0;
  EXPECT_EQ(fi_send(e.ep(), data.data(), data.size(), nullptr, team.peer(), &out), -FI_EMSGSIZE);
}

SINGLE_TEST(Datagram, IsOfferedForMessagesOnlyAndWithoutALayerAboveUs) {
  for (const std::uint64_t caps : {FI_TAGGED, FI_RMA, FI_ATOMIC}) {
    Options options = datagrams();
    options.caps = caps;
    EXPECT_EQ(get_info(options), nullptr);
  }
  const Info hints = make_hints(datagrams());
  hints->ep_attr->type = FI_EP_UNSPEC;
  fi_info* list = nullptr;
  ASSERT_EQ(fi_getinfo(kApiVersion, nullptr, nullptr, 0, hints.get(), &list), 0);
  const Info infos(list);
  EXPECT_EQ(list->ep_attr->type, FI_EP_RDM) << "the better one comes first";
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    EXPECT_EQ(info->fabric_attr->prov_name, provider_under_test());
  }
}

SINGLE_TEST(Datagram, HasNoTaggedMessages) {
  Domain domain(datagrams());
  domain.info()->caps |= FI_TAGGED;
  fid_ep* endpoint = nullptr;
  EXPECT_EQ(fi_endpoint(domain.domain(), domain.info(), &endpoint, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace conformance
