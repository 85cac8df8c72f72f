// Connections as applications see them: passive endpoints, events in order, private data.
#include "api/connected_end.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "api/endpoint.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

struct Event {
  std::uint32_t kind = 99;
  fid_t fid = nullptr;
  fi_info* info = nullptr;
  std::string data;
};

class ConnectedEndTest : public ApiTest {
 protected:
  ConnectedEndTest() {
    info.info.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    info.ep.type = FI_EP_MSG;
    EXPECT_EQ(fi_eq_open(fabric, &eq_attr, &eq, this), 0);
    sends = open_cq();
    receives = open_cq();
    EXPECT_EQ(fi_passive_ep(fabric, &info.info, &passive, this), 0);
    EXPECT_EQ(fi_pep_bind(passive, &eq->fid, 0), 0);
    EXPECT_EQ(fi_listen(passive), 0);
    std::size_t size = sizeof passive_name;
    EXPECT_EQ(fi_getname(&passive->fid, &passive_name, &size), 0);
  }
  ~ConnectedEndTest() override {
    for (fid_ep* each : {asker, acceptor}) {
      if (each != nullptr) {
        EXPECT_EQ(fi_close(&each->fid), 0);
      }
    }
    if (passive != nullptr) {
      EXPECT_EQ(fi_close(&passive->fid), 0);
    }
    for (fid_t each : {&sends->fid, &receives->fid, &eq->fid}) EXPECT_EQ(fi_close(each), 0);
    EXPECT_EQ(platform.infos, 0);
  }

  fid_ep* open(fi_info* with) {
    fid_ep* opened = nullptr;
    EXPECT_EQ(fi_endpoint(domain, with, &opened, this), 0);
    EXPECT_EQ(fi_ep_bind(opened, &eq->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(opened, &sends->fid, FI_TRANSMIT), 0);
    EXPECT_EQ(fi_ep_bind(opened, &receives->fid, FI_RECV), 0);
    return opened;
  }
  /// The next event. An error event has kind 0 and the error number in `data`, with err_data behind it.
  Event next() {
    for (int i = 0; i < 100000; ++i) {
      std::byte bytes[sizeof(fi_eq_cm_entry) + 512];
      Event event;
      fi_cq_read(sends, nullptr, 0);
      const ssize_t size = fi_eq_read(eq, &event.kind, bytes, sizeof bytes, 0);
      if (size == -FI_EAGAIN) continue;
      if (size == -FI_EAVAIL) {
        fi_eq_err_entry error{};
        EXPECT_EQ(fi_eq_readerr(eq, &error, 0), ssize_t{sizeof error});
        event.kind = 0;
        event.fid = error.fid;
        event.data = std::to_string(error.err) + " " +
                     std::string(static_cast<const char*>(error.err_data), error.err_data_size);
        return event;
      }
      EXPECT_GE(size, ssize_t{sizeof(fi_eq_cm_entry)});
      fi_eq_cm_entry entry;
      std::memcpy(&entry, bytes, sizeof entry);
      event.fid = entry.fid;
      event.info = entry.info;
      event.data.assign(reinterpret_cast<const char*>(bytes) + sizeof entry,
                        static_cast<std::size_t>(size) - sizeof entry);
      return event;
    }
    return {};
  }
  bool silent() {
    std::uint32_t kind;
    for (int i = 0; i < 500; ++i) {
      if (fi_eq_read(eq, &kind, nullptr, 0, FI_PEEK) != -FI_EAGAIN) return false;
    }
    return true;
  }
  /// Returns a request that the application has read.
  Event ask(const char* words = "please") {
    asker = open(&info.info);
    EXPECT_EQ(fi_connect(asker, &passive_name, words, std::strlen(words)), 0);
    return next();
  }
  void connect() {
    Event request = ask();
    acceptor = open(request.info);
    EXPECT_EQ(fi_accept(acceptor, "yes", 3), 0);
    EXPECT_EQ(next().fid, &acceptor->fid);
    EXPECT_EQ(next().fid, &asker->fid);
    release(request);
  }
  void release(Event& request) { platform.free_info(std::exchange(request.info, nullptr)); }

  fi_eq_attr eq_attr{};
  fid_eq* eq = nullptr;
  fid_cq* sends = nullptr;
  fid_cq* receives = nullptr;
  fid_pep* passive = nullptr;
  sockaddr_in passive_name{};
  fid_ep* asker = nullptr;
  fid_ep* acceptor = nullptr;
};

TEST_F(ConnectedEndTest, EventsComeInOrderWithTheirData) {
  Event request = ask();
  EXPECT_EQ(request.kind, std::uint32_t{FI_CONNREQ});
  EXPECT_EQ(request.fid, &passive->fid);
  EXPECT_EQ(request.data, "please");
  ASSERT_NE(request.info, nullptr);
  acceptor = open(request.info);
  ASSERT_EQ(fi_accept(acceptor, "yes", 3), 0);
  const Event at_acceptor = next();
  EXPECT_EQ(at_acceptor.kind, std::uint32_t{FI_CONNECTED});
  EXPECT_EQ(at_acceptor.fid, &acceptor->fid);
  EXPECT_EQ(at_acceptor.data, "");
  const Event at_asker = next();
  EXPECT_EQ(at_asker.kind, std::uint32_t{FI_CONNECTED});
  EXPECT_EQ(at_asker.fid, &asker->fid);
  EXPECT_EQ(at_asker.data, "yes");
  ASSERT_EQ(fi_shutdown(asker, 0), 0);
  const Event own = next(), others = next();
  EXPECT_EQ(own.kind, std::uint32_t{FI_SHUTDOWN});
  EXPECT_EQ(own.fid, &asker->fid);
  EXPECT_EQ(others.kind, std::uint32_t{FI_SHUTDOWN});
  EXPECT_EQ(others.fid, &acceptor->fid);
  EXPECT_TRUE(silent());
  release(request);
}

TEST_F(ConnectedEndTest, ARejectBringsItsDataAsErrorData) {
  Event request = ask();
  ASSERT_EQ(fi_reject(passive, request.info->handle, "no", 2), 0);
  const Event refused = next();
  EXPECT_EQ(refused.kind, 0u);
  EXPECT_EQ(refused.fid, &asker->fid);
  EXPECT_EQ(refused.data, std::to_string(FI_ECONNREFUSED) + " no");
  EXPECT_EQ(fi_reject(passive, request.info->handle, "no", 2), -FI_EINVAL) << "it is answered";
  fid_ep* late = nullptr;
  EXPECT_EQ(fi_endpoint(domain, request.info, &late, this), -FI_EINVAL);
  release(request);
}

TEST_F(ConnectedEndTest, DataBeyondTheLimitIsCutOff) {
  const std::string words(300, 'x');
  Event request = ask(words.c_str());
  EXPECT_EQ(request.data, words.substr(0, 256));
  std::size_t limit = 0, size = sizeof limit;
  EXPECT_EQ(fi_getopt(&passive->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &limit, &size), 0);
  EXPECT_EQ(limit, 256u);
  EXPECT_EQ(fi_getopt(&asker->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &limit, &size), 0);
  EXPECT_EQ(limit, 256u);
  release(request);
}

TEST_F(ConnectedEndTest, NothingIsSentWithoutAConnection) {
  Event request = ask();
  int word = 1;
  EXPECT_EQ(fi_send(asker, &word, sizeof word, nullptr, 0, &word), -FI_ENOTCONN);
  EXPECT_EQ(fi_tinject(asker, &word, sizeof word, 0, 5), -FI_ENOTCONN);
  EXPECT_EQ(fi_write(asker, &word, sizeof word, nullptr, 0, 0, 1, &word), -FI_ENOTCONN);
  EXPECT_EQ(fi_shutdown(asker, 0), 0);
  EXPECT_EQ(fi_send(asker, &word, sizeof word, nullptr, 0, &word), -FI_ENOTCONN);
  EXPECT_EQ(fi_connect(asker, &passive_name, nullptr, 0), -FI_EOPBADSTATE) << "once in its lifetime";
  release(request);
}

TEST_F(ConnectedEndTest, MessagesGoToThePeerWhateverAddressIsNamed) {
  connect();
  int sent = 7, got = 0;
  ASSERT_EQ(fi_recv(acceptor, &got, sizeof got, nullptr, 12345, &got), 0);
  ASSERT_EQ(fi_send(asker, &sent, sizeof sent, nullptr, 12345, &sent), 0);
  for (int i = 0; i < 10000 && got == 0; ++i) fi_cq_read(receives, nullptr, 0);
  EXPECT_EQ(got, 7);
  const auto name_by = [](auto call, auto* of) {
    sockaddr_in name{};
    std::size_t size = sizeof name;
    EXPECT_EQ(call(of, &name, &size), 0);
    return SocketAddress::from(reinterpret_cast<sockaddr*>(&name), sizeof name);
  };
  EXPECT_EQ(name_by(fi_getpeer, asker), name_by(fi_getname, &acceptor->fid))
      << "the passive endpoint's address";
  EXPECT_EQ(name_by(fi_getpeer, acceptor), name_by(fi_getname, &asker->fid));
}

/// A counter for sends counts an injected message once it has been transmitted, not once it is copied.
TEST_F(ConnectedEndTest, ACounterMayBeBoundAfterTheRequestIsTaken) {
  connect();
  fid_cntr* counter = open_cntr();
  ASSERT_EQ(fi_ep_bind(acceptor, &counter->fid, FI_SEND), 0);
  EXPECT_EQ(endpoint_of(acceptor).options().inject_flags().completion_level,
            protocol::CompletionLevel::transmit);
  int sent = 7, got = 0;
  ASSERT_EQ(fi_recv(asker, &got, sizeof got, nullptr, 0, &got), 0);
  ASSERT_EQ(fi_inject(acceptor, &sent, sizeof sent, 0), 0);
  for (int i = 0; i < 10000 && fi_cntr_read(counter) == 0; ++i) fi_cq_read(receives, nullptr, 0);
  EXPECT_EQ(fi_cntr_read(counter), 1u);
  EXPECT_EQ(got, 7);
  EXPECT_EQ(fi_close(&std::exchange(acceptor, nullptr)->fid), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(ConnectedEndTest, APassiveEndpointThatClosesRefusesWhatWaits) {
  Event request = ask();
  ASSERT_EQ(fi_close(&std::exchange(passive, nullptr)->fid), 0);
  EXPECT_EQ(next().data, std::to_string(FI_ECONNREFUSED) + " ");
  fid_ep* late = nullptr;
  EXPECT_EQ(fi_endpoint(domain, request.info, &late, this), -FI_EINVAL);
  release(request);
}

TEST_F(ConnectedEndTest, APassiveEndpointMayCloseOnceItsRequestIsTaken) {
  Event request = ask();
  acceptor = open(request.info);
  ASSERT_EQ(fi_enable(acceptor), 0);
  ASSERT_EQ(fi_close(&std::exchange(passive, nullptr)->fid), 0);
  EXPECT_TRUE(silent());
  ASSERT_EQ(fi_accept(acceptor, "yes", 3), 0);
  EXPECT_EQ(next().fid, &acceptor->fid);
  const Event at_asker = next();
  EXPECT_EQ(at_asker.kind, std::uint32_t{FI_CONNECTED});
  EXPECT_EQ(at_asker.data, "yes");
  release(request);
}

TEST_F(ConnectedEndTest, ARequestMayBeRejectedUntilItIsAccepted) {
  Event request = ask();
  acceptor = open(request.info);
  ASSERT_EQ(fi_enable(acceptor), 0);
  ASSERT_EQ(fi_reject(passive, request.info->handle, "no", 2), 0);
  const Event refused = next();
  EXPECT_EQ(refused.fid, &asker->fid);
  EXPECT_EQ(refused.data, std::to_string(FI_ECONNREFUSED) + " no");
  EXPECT_EQ(fi_accept(acceptor, nullptr, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_reject(passive, request.info->handle, "no", 2), -FI_EINVAL);
  release(request);
}

TEST_F(ConnectedEndTest, BeyondTheBacklogRequestsAreRefused) {
  ASSERT_EQ(fi_close(&passive->fid), 0);
  ASSERT_EQ(fi_passive_ep(fabric, &info.info, &passive, this), 0);
  ASSERT_EQ(fi_pep_bind(passive, &eq->fid, 0), 0);
  int backlog = 1;
  ASSERT_EQ(fi_control(&passive->fid, FI_BACKLOG, &backlog), 0);
  ASSERT_EQ(fi_listen(passive), 0);
  std::size_t size = sizeof passive_name;
  ASSERT_EQ(fi_getname(&passive->fid, &passive_name, &size), 0);
  Event request = ask();
  fid_ep* second = open(&info.info);
  ASSERT_EQ(fi_connect(second, &passive_name, nullptr, 0), 0);
  const Event refused = next();
  EXPECT_EQ(refused.fid, &second->fid);
  EXPECT_EQ(refused.data, std::to_string(FI_ECONNREFUSED) + " ");
  EXPECT_EQ(fi_close(&second->fid), 0);
  release(request);
}

TEST_F(ConnectedEndTest, AnEndpointThatClosesTellsItsPeer) {
  connect();
  int got = 0;
  ASSERT_EQ(fi_recv(acceptor, &got, sizeof got, nullptr, 0, &got), 0);
  ASSERT_EQ(fi_close(&std::exchange(asker, nullptr)->fid), 0);
  const Event ended = next();
  EXPECT_EQ(ended.kind, std::uint32_t{FI_SHUTDOWN});
  EXPECT_EQ(ended.fid, &acceptor->fid);
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(receives, &error, 0), 1);
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_TRUE(silent());
}

TEST_F(ConnectedEndTest, AnEndpointMayTakeTheAddressOfAPassiveEndpoint) {
  fid_pep* source = nullptr;
  ASSERT_EQ(fi_passive_ep(fabric, &info.info, &source, this), 0);
  sockaddr_in wanted = raw(host(77, 1234)), got{};
  ASSERT_EQ(fi_setname(&source->fid, &wanted, sizeof wanted), 0);
  Info with = info;
  with.info.handle = &source->fid;
  with.info.ep_attr = &info.ep;
  asker = open(&with.info);
  std::size_t size = sizeof got;
  ASSERT_EQ(fi_getname(&asker->fid, &got, &size), 0);
  EXPECT_EQ(std::memcmp(&got, &wanted, sizeof got), 0);
  EXPECT_EQ(fi_close(&source->fid), 0);
  with.info.handle = &passive->fid;
  fid_ep* refused = nullptr;
  EXPECT_EQ(fi_endpoint(domain, &with.info, &refused, this), -FI_EINVAL) << "it listens";
}

TEST_F(ConnectedEndTest, APassiveEndpointClosesOnlyAfterItHasGivenUpItsAddress) {
  fid_pep* source = nullptr;
  ASSERT_EQ(fi_passive_ep(fabric, &info.info, &source, this), 0);
  std::atomic<bool> closed{false};
  std::thread closer;
  platform.while_building = [&] {
    closer = std::thread([&] {
      EXPECT_EQ(fi_close(&source->fid), 0);
      closed = true;
    });
    for (int i = 0; i < 50 && !closed; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_FALSE(closed);
  };
  Info with = info;
  with.info.handle = &source->fid;
  with.info.ep_attr = &info.ep;
  EXPECT_EQ(fi_endpoint(domain, &with.info, &asker, this), 0);
  closer.join();
  EXPECT_TRUE(closed);
}

TEST_F(ConnectedEndTest, ThreadsMayAskAPassiveEndpointForItsAddressAtOnce) {
  fid_pep* source = nullptr;
  ASSERT_EQ(fi_passive_ep(fabric, &info.info, &source, this), 0);
  const int built_before = platform.built;
  sockaddr_in names[2]{};
  const auto ask_name = [&](sockaddr_in& name) {
    std::size_t size = sizeof name;
    EXPECT_EQ(fi_getname(&source->fid, &name, &size), 0);
  };
  std::atomic<bool> answered{false};
  std::thread other;
  platform.while_building = [&] {
    other = std::thread([&] {
      ask_name(names[1]);
      answered = true;
    });
    for (int i = 0; i < 50 && !answered; ++i) std::this_thread::sleep_for(1ms);
  };
  ask_name(names[0]);
  other.join();
  EXPECT_EQ(platform.built, built_before + 1);
  EXPECT_EQ(std::memcmp(&names[0], &names[1], sizeof names[0]), 0);
  EXPECT_EQ(fi_close(&source->fid), 0);
}

TEST_F(ConnectedEndTest, AConnectionNeedsAnEventQueue) {
  fid_ep* bare = nullptr;
  ASSERT_EQ(fi_endpoint(domain, &info.info, &bare, this), 0);
  EXPECT_EQ(fi_connect(bare, &passive_name, nullptr, 0), -FI_ENOEQ);
  EXPECT_EQ(fi_shutdown(bare, 0), -FI_ENOTCONN);
  EXPECT_EQ(fi_accept(bare, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&bare->fid), 0);
}

}  // namespace
}  // namespace cluster::api::test
