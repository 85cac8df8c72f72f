// The life of the objects: what must be bound before what, what may be closed when, and calls that
// make no sense. fi_endpoint(3), fi_domain(3), fi_cm(3)
#include <arpa/inet.h>
#include <netinet/in.h>

#include "fabric.h"

namespace conformance {
namespace {

fid_ep* open_bare(Domain& domain) {
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_endpoint(domain.domain(), domain.info(), &ep, nullptr), 0);
  return ep;
}

fid_cq* open_queue(Domain& domain) {
  fi_cq_attr attr{};
  attr.format = FI_CQ_FORMAT_TAGGED;
  fid_cq* cq = nullptr;
  EXPECT_EQ(fi_cq_open(domain.domain(), &attr, &cq, nullptr), 0);
  return cq;
}

sockaddr_in name_of(const Blob& blob) {
  sockaddr_in in{};
  EXPECT_EQ(blob.size(), sizeof in);
  std::memcpy(&in, blob.data(), std::min(blob.size(), sizeof in));
  return in;
}

SINGLE_TEST(Endpoint, NeedsAddressVectorAndQueuesToBeEnabled) {
  Domain domain;
  const Owned<fid_cq> cq(open_queue(domain));
  const Owned<fid_ep> no_av(open_bare(domain));
  EXPECT_EQ(fi_ep_bind(no_av.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(no_av.get()), -FI_ENOAV);
  const Owned<fid_ep> no_cq(open_bare(domain));
  EXPECT_EQ(fi_ep_bind(no_cq.get(), &domain.av()->fid, 0), 0);
  EXPECT_EQ(fi_enable(no_cq.get()), -FI_ENOCQ);
  const Owned<fid_ep> half(open_bare(domain));
  EXPECT_EQ(fi_ep_bind(half.get(), &domain.av()->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(half.get(), &cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_enable(half.get()), -FI_ENOCQ);
  EXPECT_EQ(fi_ep_bind(half.get(), &cq->fid, FI_RECV), 0);
  EXPECT_EQ(fi_enable(half.get()), 0);
}

SINGLE_TEST(Endpoint, TakesNothingBeforeItIsEnabled) {
  Domain domain;
  const Owned<fid_cq> cq(open_queue(domain));
  const Owned<fid_ep> ep(open_bare(domain));
  EXPECT_EQ(fi_ep_bind(ep.get(), &domain.av()->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  char byte = 0;
  EXPECT_EQ(fi_send(ep.get(), &byte, 1, nullptr, 0, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_recv(ep.get(), &byte, 1, nullptr, 0, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_tsend(ep.get(), &byte, 1, nullptr, 0, 0, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_trecv(ep.get(), &byte, 1, nullptr, 0, 0, 0, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_inject(ep.get(), &byte, 1, 0), -FI_EOPBADSTATE);
}

SINGLE_TEST(Endpoint, RefusesBindingsThatMakeNoSense) {
  Domain domain;
  const Owned<fid_cq> one(open_queue(domain));
  const Owned<fid_cq> two(open_queue(domain));
  const Owned<fid_ep> ep(open_bare(domain));
  EXPECT_EQ(fi_ep_bind(ep.get(), &one->fid, FI_TRANSMIT), 0);
  EXPECT_NE(fi_ep_bind(ep.get(), &two->fid, FI_TRANSMIT), 0) << "a second queue for the same events";
  EXPECT_NE(fi_ep_bind(ep.get(), &domain.domain()->fid, 0), 0);
  EXPECT_NE(fi_ep_bind(ep.get(), &two->fid, FI_RECV | (std::uint64_t{1} << 3)), 0) << "an unknown flag";
}

SINGLE_TEST(Endpoint, NothingCloseWhileItIsUsed) {
  const Info info = get_info({});
  ASSERT_NE(info, nullptr);
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_cntr* counter = nullptr;
  fid_eq* eq = nullptr;
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
  fi_av_attr av_attr{};
  ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
  fi_cq_attr cq_attr{};
  ASSERT_EQ(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
  fi_cntr_attr counter_attr{};
  ASSERT_EQ(fi_cntr_open(domain, &counter_attr, &counter, nullptr), 0);
  fi_eq_attr eq_attr{};
  ASSERT_EQ(fi_eq_open(fabric, &eq_attr, &eq, nullptr), 0);
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(ep, &eq->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_ep_bind(ep, &counter->fid, FI_SEND | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep), 0);
  for (fid* used : {&fabric->fid, &domain->fid, &av->fid, &cq->fid, &counter->fid}) {
    EXPECT_EQ(fi_close(used), -FI_EBUSY) << "class " << used->fclass;
  }
  for (fid* unused : {&ep->fid, &counter->fid, &cq->fid, &av->fid, &domain->fid, &eq->fid, &fabric->fid}) {
    EXPECT_EQ(fi_close(unused), 0);
  }
}

SINGLE_TEST(Endpoint, SaysItsName) {
  Endpoint e;
  const sockaddr_in in = name_of(e.name());
  EXPECT_EQ(in.sin_family, AF_INET);
  EXPECT_NE(in.sin_port, 0);
  EXPECT_NE(in.sin_addr.s_addr, htonl(INADDR_ANY));
  std::size_t size = 0;
  EXPECT_EQ(fi_getname(&e.ep()->fid, nullptr, &size), -FI_ETOOSMALL);
  EXPECT_EQ(size, sizeof in);
  unsigned char part[sizeof in];
  std::fill(std::begin(part), std::end(part), 0xEE);
  size = 4;
  EXPECT_EQ(fi_getname(&e.ep()->fid, part, &size), -FI_ETOOSMALL);
  EXPECT_EQ(size, sizeof in);
  EXPECT_EQ(part[4], 0xEE) << "wrote behind the buffer";
}

SINGLE_TEST(Endpoint, TakesThePortItIsGivenAndOnlyOnce) {
  Endpoint any;
  Options options;
  options.service = std::to_string(ntohs(name_of(any.name()).sin_port));
  Domain domain(options);
  fid_ep* second = nullptr;
  int result = fi_endpoint(domain.domain(), domain.info(), &second, nullptr);
  if (result == 0) {
    const Owned<fid_cq> cq(open_queue(domain));
    const Owned<fid_ep> owned(second);
    EXPECT_EQ(fi_ep_bind(second, &domain.av()->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(second, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    result = fi_enable(second);
  }
  EXPECT_EQ(result, -FI_EADDRINUSE);
}

SINGLE_TEST(Endpoint, APortIsFreeAgainAfterClose) {
  std::string port;
  {
    Endpoint any;
    port = std::to_string(ntohs(name_of(any.name()).sin_port));
  }
  Options options;
  options.service = port;
  for (int life = 0; life < 5; ++life) {
    Endpoint e(options);
    EXPECT_EQ(std::to_string(ntohs(name_of(e.name()).sin_port)), port);
  }
}

SINGLE_TEST(Endpoint, RefusesOrdersThatMakeNoSense) {
  Endpoint e;
  const fi_addr_t self = e.insert(e.name());
  std::vector<char> buffer(1 << 20);
  const fi_info* info = e.domain().info();
  const ssize_t injected = fi_inject(e.ep(), buffer.data(), info->tx_attr->inject_size + 1, self);
  EXPECT_TRUE(injected == -FI_EMSGSIZE || injected == -FI_EINVAL) << injected;
  if (info->ep_attr->max_msg_size < SIZE_MAX) {
    EXPECT_EQ(fi_send(e.ep(), buffer.data(), info->ep_attr->max_msg_size + 1, nullptr, self, nullptr),
              -FI_EMSGSIZE);
  }
  std::vector<iovec> pieces(info->tx_attr->iov_limit + 1, iovec{buffer.data(), 1});
  EXPECT_EQ(fi_sendv(e.ep(), pieces.data(), nullptr, pieces.size(), self, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_recvv(e.ep(), pieces.data(), nullptr, pieces.size(), self, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_tsendv(e.ep(), pieces.data(), nullptr, pieces.size(), self, 0, nullptr), -FI_EINVAL);
  EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)));
}

SINGLE_TEST(Endpoint, SendingWhereNoProcessListensFailsAtOnceOrByCompletion) {
  Endpoint e;
  char byte = 0;
  int context = 0;
  for (const fi_addr_t unknown : {fi_addr_t{0}, fi_addr_t{12345}, fi_addr_t{FI_ADDR_UNSPEC}}) {
    const ssize_t result = e.post([&] { return fi_send(e.ep(), &byte, 1, nullptr, unknown, &context); });
    if (result != 0) continue;
    const auto outcome = e.await(&context);
    ASSERT_TRUE(outcome.has_value());
    EXPECT_TRUE(outcome->error);
  }
}

SINGLE_TEST(Endpoint, KnowsItsOptions) {
  Endpoint e;
  std::size_t value = 64;
  std::size_t size = sizeof value;
  EXPECT_EQ(fi_setopt(&e.ep()->fid, FI_OPT_ENDPOINT, 9999, &value, size), -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_getopt(&e.ep()->fid, FI_OPT_ENDPOINT, 9999, &value, &size), -FI_ENOPROTOOPT);
}

SINGLE_TEST(Endpoint, RefusesWhatItIsNotMadeFor) {
  Domain domain;
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_scalable_ep(domain.domain(), domain.info(), &ep, nullptr), -FI_ENOSYS);
  fid_pep* passive = nullptr;
  EXPECT_EQ(fi_passive_ep(domain.fabric(), domain.info(), &passive, nullptr), -FI_EINVAL) << "no FI_EP_MSG";
  const Info changed(fi_dupinfo(domain.info()));
  changed->ep_attr->type = FI_EP_SOCK_DGRAM;
  EXPECT_LT(fi_endpoint(domain.domain(), changed.get(), &ep, nullptr), 0);
  Endpoint e(domain);
  EXPECT_EQ(fi_tx_context(e.ep(), 0, nullptr, &ep, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_rx_context(e.ep(), 0, nullptr, &ep, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_connect(e.ep(), e.name().data(), nullptr, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_shutdown(e.ep(), 0), -FI_ENOSYS);
  fid_mc* group = nullptr;
  EXPECT_EQ(fi_join(e.ep(), e.name().data(), 0, &group, nullptr), -FI_EINVAL) << "the address of one";
  void* ops = nullptr;
  EXPECT_EQ(fi_open_ops(&domain.domain()->fid, "unheard of", 0, &ops, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_open_ops(&e.ep()->fid, "unheard of", 0, &ops, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_control(&e.ep()->fid, FI_ALIAS, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(e.ep(), &domain.av()->fid, 0), -FI_EOPBADSTATE) << "it is enabled";
  EXPECT_EQ(fi_enable(e.ep()), 0) << "it is enabled already";
}

SINGLE_TEST(Endpoint, TakesANameUntilItHasOne) {
  Domain domain;
  const Owned<fid_cq> cq(open_queue(domain));
  sockaddr_in wish{};
  {
    const Endpoint any(domain);
    wish = name_of(any.name());
  }
  const Owned<fid_ep> ep(open_bare(domain));
  EXPECT_EQ(fi_setname(&ep->fid, &wish, 3), -FI_EINVAL);
  EXPECT_EQ(fi_setname(&ep->fid, &wish, sizeof wish), 0);
  sockaddr_in name{};
  std::size_t size = sizeof name;
  EXPECT_EQ(fi_getname(&ep->fid, &name, &size), 0);
  EXPECT_EQ(name.sin_port, wish.sin_port);
  EXPECT_EQ(name.sin_addr.s_addr, wish.sin_addr.s_addr);
  EXPECT_EQ(fi_setname(&ep->fid, &wish, sizeof wish), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_ep_bind(ep.get(), &domain.av()->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep.get()), 0);
}

SINGLE_TEST(Endpoint, AnEventQueueIsHeldByEndpointAndDomain) {
  Domain domain;
  fi_eq_attr attr{};
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(domain.fabric(), &attr, &eq, nullptr), 0);
  fid_ep* ep = open_bare(domain);
  EXPECT_EQ(fi_ep_bind(ep, &eq->fid, 0), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  fid_domain* another = nullptr;
  ASSERT_EQ(fi_domain(domain.fabric(), domain.info(), &another, nullptr), 0);
  EXPECT_EQ(fi_domain_bind(another, &eq->fid, FI_REG_MR), -FI_ENOSYS) << "no registration is asynchronous";
  EXPECT_EQ(fi_domain_bind(another, &eq->fid, 0), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&another->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

SINGLE_TEST(Endpoint, ManyLiveTogetherAndTalk) {
  constexpr std::size_t kCount = 48;
  Domain domain;
  std::vector<std::unique_ptr<Endpoint>> all;
  std::vector<fi_addr_t> addresses;
  for (std::size_t i = 0; i < kCount; ++i) {
    all.push_back(std::make_unique<Endpoint>(domain));
    addresses.push_back(domain.insert(all.back()->name()));
    EXPECT_EQ(addresses.back(), i);
  }
  std::vector<int> contexts(kCount);
  std::vector<unsigned> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    fid_ep* ep = all[i]->ep();
    all[i]->must(
        [&] { return fi_recv(ep, &values[i], sizeof(unsigned), nullptr, FI_ADDR_UNSPEC, &contexts[i]); });
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto value = static_cast<unsigned>(i);
    all[i]->must([&] { return fi_inject(all[i]->ep(), &value, sizeof value, addresses[(i + 1) % kCount]); });
  }
  const Deadline deadline(std::chrono::seconds(20));
  for (std::size_t done = 0; done < kCount && !deadline.passed();) {
    for (std::size_t i = 0; i < kCount; ++i) {
      if (const auto outcome = all[i]->await(&contexts[i], std::chrono::milliseconds(0))) {
        EXPECT_FALSE(outcome->error);
        EXPECT_EQ(values[i], (i + kCount - 1) % kCount);
        ++done;
      }
    }
  }
  EXPECT_FALSE(deadline.passed());
}

fid_ep* alias_of(fid_ep* ep, std::uint64_t flags) {
  fid_ep* alias = nullptr;
  EXPECT_EQ(fi_ep_alias(ep, &alias, flags), 0);
  return alias;
}

SINGLE_TEST(Endpoint, AnAliasPostsThroughItsOriginalWithFlagsOfItsOwn) {
  Options options;
  options.bind_flags = FI_SELECTIVE_COMPLETION;
  Endpoint e(options);
  const fi_addr_t self = e.insert(e.name());
  const Owned<fid_ep> loud(alias_of(e.ep(), FI_TRANSMIT | FI_COMPLETION));
  std::uint64_t flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&loud->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_TRUE(flags & FI_COMPLETION);
  flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&e.ep()->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_FALSE(flags & FI_COMPLETION) << "the original has kept its own";

  char sent[2] = {'a', 'b'}, received[2] = {};
  for (char& place : received) {
    const iovec vector{&place, 1};
    const fi_msg receive{&vector, nullptr, 1, FI_ADDR_UNSPEC, &place, 0};
    e.must([&] { return fi_recvmsg(loud.get(), &receive, FI_COMPLETION); });
  }
  e.must([&] { return fi_send(e.ep(), &sent[0], 1, nullptr, self, &sent[0]); });
  e.must([&] { return fi_send(loud.get(), &sent[1], 1, nullptr, self, &sent[1]); });
  e.finish(&received[0]);
  e.finish(&received[1]);
  e.finish(&sent[1]);
  EXPECT_EQ(received[0], 'a');
  EXPECT_EQ(received[1], 'b');
  EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)))
      << "the original reports a completion that was not requested";

  Blob name(128);
  std::size_t size = name.size();
  EXPECT_EQ(fi_getname(&loud->fid, name.data(), &size), 0);
  name.resize(size);
  EXPECT_EQ(name, e.name());
}

SINGLE_TEST(Endpoint, AnAliasHoldsItsOriginal) {
  Domain domain;
  const Owned<fid_cq> cq(open_queue(domain));
  fid_ep* ep = open_bare(domain);
  fid_ep* first = nullptr;
  EXPECT_EQ(fi_ep_alias(ep, &first, FI_TRANSMIT), -FI_EOPBADSTATE) << "it is not enabled";
  EXPECT_EQ(fi_ep_bind(ep, &domain.av()->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep), 0);
  first = alias_of(ep, FI_TRANSMIT | FI_DELIVERY_COMPLETE);
  fid_ep* second = alias_of(first, FI_RECV);
  char byte = 0;
  EXPECT_EQ(fi_recv(second, &byte, 1, nullptr, FI_ADDR_UNSPEC, &byte), 0);
  EXPECT_EQ(fi_cancel(&first->fid, &byte), 0);
  EXPECT_EQ(fi_close(&ep->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(fi_close(&ep->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&second->fid), 0);
  EXPECT_EQ(fi_close(&ep->fid), 0);
}

SINGLE_TEST(Endpoint, AnAliasNamesOneDirectionAndFlagsThatThereAre) {
  Endpoint e;
  fid_ep* alias = nullptr;
  EXPECT_EQ(fi_ep_alias(e.ep(), &alias, 0), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(e.ep(), &alias, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(e.ep(), &alias, FI_TRANSMIT | FI_TRIGGER), -FI_EBADFLAGS);
  EXPECT_EQ(alias, nullptr);
}

/// Whatever they promise is posted without -FI_EAGAIN.
SINGLE_TEST(Endpoint, SaysHowMuchMoreItTakes) {
  Endpoint e;
  const fi_addr_t self = e.insert(e.name());
  // fi_tx_size_left and fi_rx_size_left, whose inline forms are deprecated.
  const ssize_t size_left = e.ep()->ops->tx_size_left(e.ep());
  EXPECT_GT(size_left, 0);
  EXPECT_GT(e.ep()->ops->rx_size_left(e.ep()), 0);
  char byte = 0;
  std::vector<char> contexts(static_cast<std::size_t>(size_left));
  for (char& context : contexts) EXPECT_EQ(fi_send(e.ep(), &byte, 1, nullptr, self, &context), 0);
  for (char& context : contexts) e.must([&] { return fi_recv(e.ep(), &context, 1, nullptr, self, &byte); });
  for (char& context : contexts) e.finish(&context);
}

}  // namespace
}  // namespace conformance
