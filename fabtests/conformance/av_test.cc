// The address vector: handles, lookups, removal, and addresses that are none. fi_av(3)
#include <arpa/inet.h>
#include <netinet/in.h>

#include <string_view>

#include "fabric.h"

namespace conformance {
namespace {

sockaddr_in node(unsigned n) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(9228);
  in.sin_addr.s_addr = htonl(0x0A000001 + n);
  return in;
}

SINGLE_TEST(AddressVector, HandlesOfATableCountFromZero) {
  Domain domain;
  std::vector<sockaddr_in> nodes;
  for (unsigned i = 0; i < 2000; ++i) nodes.push_back(node(i));
  std::vector<fi_addr_t> handles(nodes.size());
  ASSERT_EQ(fi_av_insert(domain.av(), nodes.data(), nodes.size(), handles.data(), 0, nullptr), 2000);
  for (unsigned i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(handles[i], i);
    sockaddr_in out{};
    std::size_t size = sizeof out;
    ASSERT_EQ(fi_av_lookup(domain.av(), handles[i], &out, &size), 0);
    EXPECT_EQ(size, sizeof out);
    EXPECT_EQ(std::memcmp(&out, &nodes[i], 8), 0);
  }
}

SINGLE_TEST(AddressVector, AMapWorksTheSameWay) {
  Options options;
  options.av_type = FI_AV_MAP;
  Domain domain(options);
  const sockaddr_in in = node(1);
  fi_addr_t handle = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(domain.av(), &in, 1, &handle, 0, nullptr), 1);
  EXPECT_NE(handle, FI_ADDR_NOTAVAIL);
  sockaddr_in out{};
  std::size_t size = sizeof out;
  EXPECT_EQ(fi_av_lookup(domain.av(), handle, &out, &size), 0);
  EXPECT_EQ(out.sin_addr.s_addr, in.sin_addr.s_addr);
}

SINGLE_TEST(AddressVector, FreedHandlesAreUsedAgainLowestFirst) {
  Domain domain;
  std::vector<sockaddr_in> nodes;
  for (unsigned i = 0; i < 8; ++i) nodes.push_back(node(i));
  ASSERT_EQ(fi_av_insert(domain.av(), nodes.data(), 8, nullptr, 0, nullptr), 8);
  fi_addr_t gone[2] = {5, 2};
  EXPECT_EQ(fi_av_remove(domain.av(), gone, 2, 0), 0);
  const sockaddr_in late[3] = {node(100), node(101), node(102)};
  fi_addr_t handles[3] = {};
  ASSERT_EQ(fi_av_insert(domain.av(), late, 3, handles, 0, nullptr), 3);
  EXPECT_EQ(handles[0], 2u);
  EXPECT_EQ(handles[1], 5u);
  EXPECT_EQ(handles[2], 8u);
}

SINGLE_TEST(AddressVector, RefusesHandlesWithoutAnAddress) {
  Domain domain;
  const sockaddr_in in = node(1);
  fi_addr_t handle = 0;
  ASSERT_EQ(fi_av_insert(domain.av(), &in, 1, &handle, 0, nullptr), 1);
  sockaddr_in out{};
  std::size_t size = sizeof out;
  for (fi_addr_t unknown : {fi_addr_t{1}, fi_addr_t{1000000}, fi_addr_t{FI_ADDR_NOTAVAIL}}) {
    EXPECT_EQ(fi_av_lookup(domain.av(), unknown, &out, &size), -FI_EINVAL);
    EXPECT_EQ(fi_av_remove(domain.av(), &unknown, 1, 0), -FI_EINVAL);
  }
  fi_addr_t mixed[2] = {handle, 77};
  EXPECT_EQ(fi_av_remove(domain.av(), mixed, 2, 0), -FI_EINVAL);
  fi_av_remove(domain.av(), &handle, 1, 0);
  EXPECT_EQ(fi_av_remove(domain.av(), &handle, 1, 0), -FI_EINVAL) << "removed twice";
}

SINGLE_TEST(AddressVector, RefusesAddressesThatAreNone) {
  Domain domain;
  sockaddr_in nodes[3] = {node(1), {}, node(2)};  // a zeroed one between two good ones
  fi_addr_t handles[3] = {};
  EXPECT_EQ(fi_av_insert(domain.av(), nodes, 3, handles, 0, nullptr), 2);
  EXPECT_NE(handles[0], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(handles[1], FI_ADDR_NOTAVAIL);
  EXPECT_NE(handles[2], FI_ADDR_NOTAVAIL);
  int errors[3] = {-1, -1, -1};
  EXPECT_EQ(fi_av_insert(domain.av(), nodes, 3, handles, FI_SYNC_ERR, errors), 2);
  EXPECT_EQ(errors[0], 0);
  EXPECT_NE(errors[1], 0);
  EXPECT_EQ(errors[2], 0);
}

SINGLE_TEST(AddressVector, LookupCutsToTheBufferSize) {
  Domain domain;
  const sockaddr_in in = node(1);
  ASSERT_EQ(fi_av_insert(domain.av(), &in, 1, nullptr, 0, nullptr), 1);
  unsigned char part[sizeof in];
  std::fill(std::begin(part), std::end(part), 0xEE);
  std::size_t size = 6;
  fi_av_lookup(domain.av(), 0, part, &size);
  EXPECT_EQ(size, sizeof in);
  EXPECT_EQ(part[6], 0xEE) << "wrote behind the buffer";
}

SINGLE_TEST(AddressVector, WritesAddressesAsText) {
  Domain domain;
  const sockaddr_in in = node(1);
  char text[64] = {};
  std::size_t size = sizeof text;
  ASSERT_NE(fi_av_straddr(domain.av(), &in, text, &size), nullptr);
  EXPECT_NE(std::string_view(text).find("10.0.0.2:9228"), std::string_view::npos) << text;
  char small[8];
  std::fill(std::begin(small), std::end(small), 'x');
  size = 4;
  fi_av_straddr(domain.av(), &in, small, &size);
  EXPECT_EQ(small[4], 'x') << "wrote behind the buffer";
  EXPECT_GT(size, 13u);
}

SINGLE_TEST(AddressVector, ResolvesNamesAndServices) {
  Domain domain;
  fi_addr_t handle = FI_ADDR_NOTAVAIL;
  const int inserted = fi_av_insertsvc(domain.av(), "127.0.0.1", "4711", &handle, 0, nullptr);
  ASSERT_EQ(inserted, 1);
  sockaddr_in out{};
  std::size_t size = sizeof out;
  EXPECT_EQ(fi_av_lookup(domain.av(), handle, &out, &size), 0);
  EXPECT_EQ(out.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(out.sin_port, htons(4711));
  EXPECT_LE(fi_av_insertsvc(domain.av(), "300.1.1.1", "4711", &handle, 0, nullptr), 0);
}

SINGLE_TEST(AddressVector, TakesAnAddressAsTextForANode) {
  Domain domain;
  fi_addr_t handle = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insertsvc(domain.av(), "fi_sockaddr_in://10.1.2.3:4711", nullptr, &handle, 0, nullptr), 1);
  char text[64];
  sockaddr_in out{};
  std::size_t size = sizeof out;
  EXPECT_EQ(fi_av_lookup(domain.av(), handle, &out, &size), 0);
  size = sizeof text;
  ASSERT_NE(fi_av_straddr(domain.av(), &out, text, &size), nullptr);
  EXPECT_STREQ(text, "fi_sockaddr_in://10.1.2.3:4711") << "the same form both ways";
}

SINGLE_TEST(AddressVector, CountsNodesAndServicesUp) {
  Domain domain;
  fi_addr_t handles[6];
  int errors[6] = {-1, -1, -1, -1, -1, -1};
  ASSERT_EQ(fi_av_insertsym(domain.av(), "10.1.1.1", 3, "5000", 2, handles, FI_SYNC_ERR, errors), 6);
  for (unsigned i = 0; i < 6; ++i) {
    EXPECT_EQ(errors[i], 0);
    EXPECT_EQ(handles[i], i);
    sockaddr_in out{};
    std::size_t size = sizeof out;
    ASSERT_EQ(fi_av_lookup(domain.av(), handles[i], &out, &size), 0);
    EXPECT_EQ(ntohl(out.sin_addr.s_addr), 0x0A010101 + i / 2);
    EXPECT_EQ(ntohs(out.sin_port), 5000 + i % 2);
  }
}

SINGLE_TEST(AddressVector, RefusesFlagsAndKindsThatAreNotOffered) {
  Domain domain;
  const sockaddr_in in = node(1);
  fi_addr_t handle = 0;
  EXPECT_EQ(fi_av_insert(domain.av(), &in, 1, &handle, 1ull << 50, nullptr), -FI_EBADFLAGS);
  EXPECT_EQ(fi_av_insert(domain.av(), nullptr, 1, &handle, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(domain.av(), &in, 0, &handle, 0, nullptr), 0);
  EXPECT_EQ(fi_av_insert(domain.av(), &in, 1, &handle, FI_SYNC_ERR, nullptr), -FI_EINVAL);
  fid_av* av = nullptr;
  fi_av_attr attr{};
  attr.name = "shared";
  EXPECT_EQ(fi_av_open(domain.domain(), &attr, &av, nullptr), -FI_ENOSYS);
  attr = {};
  attr.flags = FI_EVENT;
  EXPECT_EQ(fi_av_open(domain.domain(), &attr, &av, nullptr), -FI_ENOSYS);
  attr = {};
  EXPECT_EQ(fi_av_open(domain.domain(), &attr, &av, nullptr), 0);
  EXPECT_NE(attr.type, FI_AV_UNSPEC) << "the chosen type is reported";
  EXPECT_EQ(fi_close(&av->fid), 0);
}

PAIR_TEST(AddressVector, AnOldHandleWithANewMeaningReachesTheNewPeer) {
  // Side 1 has two endpoints; side 0 frees the handle of the first and gives it to the second.
  Endpoint first;
  Endpoint second(first.domain());
  const auto names = side.exchange(first.name());
  const auto others = side.exchange(second.name());
  const auto progress = [&] {
    first.progress();
    second.progress();
  };
  int context = 0;
  char value = 0;
  if (side.first()) {
    fi_addr_t handle = first.insert(names[1]);
    char one = 1;
    first.must([&] { return fi_send(first.ep(), &one, 1, nullptr, handle, &context); });
    first.finish(&context);
    const fi_addr_t before = handle;
    EXPECT_EQ(fi_av_remove(first.domain().av(), &handle, 1, 0), 0);
    handle = first.insert(others[1]);
    EXPECT_EQ(handle, before);
    char two = 2;
    first.must([&] { return fi_send(first.ep(), &two, 1, nullptr, handle, &context); });
    first.finish(&context);
  } else {
    first.must([&] { return fi_recv(first.ep(), &value, 1, nullptr, FI_ADDR_UNSPEC, &context); });
    first.finish(&context);
    EXPECT_EQ(value, 1);
    second.must([&] { return fi_recv(second.ep(), &value, 1, nullptr, FI_ADDR_UNSPEC, &context); });
    second.finish(&context);
    EXPECT_EQ(value, 2);
  }
  side.meet(progress);
}

}  // namespace
}  // namespace conformance
