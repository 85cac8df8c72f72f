// Connections (FI_EP_MSG) among hostile endpoints. A passive endpoint, an asking end and an accepting end
// are honest. Two hostile endpoints obey the protocol of frames. But they send connection messages of every
// kind to any endpoint, with ids that are right or nearly right. Each attempt must be decided once. Each
// connection and each operation must end once. A receive must get only messages of the peer.
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/engine.h"
#include "fuzz/hostile_input.h"
#include "support/fake_network.h"

namespace {

using namespace cluster;
using connection::ConnectionEnd;
using connection::ConnectRequest;
using engine::ConnectionEndpoint;

constexpr std::uint64_t kId = 1000;

SocketAddress host(int last) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, 9228);
}

const SocketAddress kPassive = host(1);
const SocketAddress kAsker = host(2);
const SocketAddress kAcceptor = host(3);
const std::array<SocketAddress, 5> kAll{kPassive, kAsker, kAcceptor, host(4), host(5)};

transport::EngineSettings settings() {
  transport::EngineSettings chosen;
  chosen.peer_timeout = 5s;
  chosen.outage = chosen.linger = 0s;  // the clock stands still while an engine closes
  return chosen;
}

/// An endpoint with its queues. Each message begins with the number of its sender.
struct Endpoint {
  Endpoint(test::FakeNetwork& network, const SocketAddress& its_name, std::uint64_t epoch)
      : random(epoch),
        environment{network.clock(), random, log, counters},
        engine(engine::EngineParts{.environment = environment,
                                   .settings = settings(),
                                   .name = its_name,
                                   .epoch = epoch,
                                   .link = std::make_unique<test::FakeLink>(network, its_name),
                                   .local_listener = nullptr,
                                   .resources = nullptr}) {}

  test::FakeRandom random;
  test::FakeLog log;
  Counters counters;
  Environment environment;
  transport::AddressTable book;
  protocol::CompletionQueue sent;
  protocol::CompletionQueue received;
  std::deque<std::vector<std::byte>> buffers;
  std::set<const void*> alive;  ///< operations without a completion
  engine::Engine engine;
};

struct End final : Endpoint, connection::ConnectionListener {
  End(test::FakeNetwork& network, const SocketAddress& its_name, std::uint64_t epoch)
      : Endpoint(network, its_name, epoch) {
    engine.open_connection(static_cast<connection::ConnectionListener&>(*this));
    engine.attach(engine.connection_addresses(), {.tx_queue = &sent, .rx_queue = &received});
  }
  void connected(ConstBytes) override {
    if (is_connected || is_over) __builtin_trap();
    is_connected = true;
  }
  void refused(Status, ConstBytes) override {
    if (is_connected || is_over) __builtin_trap();
    is_over = true;
  }
  void ended(const SocketAddress&, Status) override {
    if (is_over) __builtin_trap();
    is_over = true;
  }
  template <typename Act>
  auto with_end(Act&& act) {
    return engine.with_connection([&](ConnectionEndpoint& all) { return act(all.connection()); });
  }
  void send(std::size_t size) {
    std::vector<std::byte>& content = buffers.emplace_back(size);
    content.front() = engine.name().ip().back();
    const ConstBytes slice(content);
    alive.insert(&content);
    if (engine.send({.slices = {&slice, 1}, .length = size, .context = &content}) != Status::ok)
      alive.erase(&content);
  }
  void receive() {
    std::vector<std::byte>& buffer = buffers.emplace_back(100'000);
    const Bytes slice(buffer);
    alive.insert(&buffer);
    if (engine.receive({.slices = {&slice, 1}, .from = ConnectionEndpoint::kPeer, .context = &buffer}) !=
        Status::ok)
      alive.erase(&buffer);
  }
  void check() {
    const auto any = [](const protocol::Completion&) { return true; };
    const auto note = [this](const protocol::Completion& each) {
      if (alive.erase(each.context) == 0) __builtin_trap();
      if (each.status != Status::ok || each.kind != protocol::Completion::Kind::receive) return;
      const SocketAddress peer = with_end([](ConnectionEnd& end) { return end.peer(); });
      const auto& content = *static_cast<const std::vector<std::byte>*>(each.context);
      if (each.length != 0 && content.front() != peer.ip().back()) __builtin_trap();
    };
    sent.drain(~std::size_t{0}, any, note);
    received.drain(~std::size_t{0}, any, note);
  }

  bool is_connected = false;
  bool is_over = false;
};

struct Passive final : Endpoint, connection::RequestListener {
  Passive(test::FakeNetwork& network, std::uint64_t epoch) : Endpoint(network, kPassive, epoch) {
    engine.open_connection(static_cast<connection::RequestListener&>(*this));
    engine.attach(engine.connection_addresses(), {});
  }
  bool requested(const ConnectRequest& request, ConstBytes) override {
    if (requests.size() == 4) return false;
    requests.push_back(request);
    return true;
  }
  std::deque<ConnectRequest> requests;
};

/// An endpoint that says what the fuzzer likes.
struct Liar final : Endpoint {
  Liar(test::FakeNetwork& network, const SocketAddress& its_name, std::uint64_t epoch)
      : Endpoint(network, its_name, epoch) {
    for (const SocketAddress& name : kAll) book.insert(name);
    engine.attach(book, {.tx_queue = &sent, .rx_queue = &received});
  }
  void say(std::uint64_t to, std::vector<std::byte> bytes, std::uint64_t tag, std::uint64_t data,
           bool internal) {
    buffers.push_back(std::move(bytes));
    const ConstBytes slice(buffers.back());
    protocol::SendOp op{.slices = {&slice, 1}, .length = slice.size(), .to = to, .tag = tag, .data = data};
    op.tagged = op.internal = internal;
    op.has_data = true;
    engine.send(op);
  }
};

class ConnectionHarness {
 public:
  explicit ConnectionHarness(FuzzedDataProvider& input) : input_(input) { renew(); }

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 15)) {
      case 0: pass(Duration(input_.ConsumeIntegralInRange<std::int64_t>(0, 3'000'000'000))); break;
      case 1: connect(); break;
      case 2:
      case 3: answer(); break;
      case 4: accept(); break;
      case 5: some_end().receive(); break;
      case 6: send(); break;
      case 7: shut_down(some_end()); break;
      case 8:
        passive_ = input_.ConsumeBool() ? std::make_unique<Passive>(network_, ++epoch_) : nullptr;
        break;
      case 9:
        if (asker_->is_over) renew();
        break;
      case 10: replace_liar(); break;
      default: lie(); break;
    }
    for (int turn = 0; turn < 3; ++turn) pass(100us);
  }

 private:
  End& some_end() { return input_.ConsumeBool() ? *asker_ : *acceptor_; }

  void renew() {
    asker_.reset();
    acceptor_.reset();
    asker_ = std::make_unique<End>(network_, kAsker, ++epoch_);
    acceptor_ = std::make_unique<End>(network_, kAcceptor, ++epoch_);
    if (passive_ == nullptr) passive_ = std::make_unique<Passive>(network_, ++epoch_);
  }
  void replace_liar() {
    std::unique_ptr<Liar>& liar = liars_[input_.ConsumeIntegralInRange<std::size_t>(0, 1)];
    liar.reset();
    liar = std::make_unique<Liar>(network_, kAll[&liar == &liars_[0] ? 3 : 4], ++epoch_);
  }
  void pass(Duration time) {
    network_.clock().advance(time);
    if (passive_ != nullptr) passive_->engine.poll();
    for (End* end : {asker_.get(), acceptor_.get()}) {
      end->engine.poll();
      end->check();
    }
    for (const std::unique_ptr<Liar>& liar : liars_) {
      if (liar != nullptr) liar->engine.poll();
    }
  }
  void connect() {
    asker_->with_end([](ConnectionEnd& end) {
      if (end.state() == ConnectionEnd::State::idle) end.connect(kPassive, kId, {});
    });
  }
  void answer() {
    if (passive_ == nullptr || passive_->requests.empty()) return;
    const ConnectRequest request = passive_->requests.front();
    passive_->requests.pop_front();
    const bool takes =
        input_.ConsumeProbability<float>() < 0.8f && acceptor_->with_end([&](ConnectionEnd& end) {
          if (end.state() != ConnectionEnd::State::idle) return false;
          end.set_asker(request.asker, request.id);
          return true;
        });
    passive_->engine.with_connection([&](ConnectionEndpoint& all) {
      takes ? all.listener().hand_over(request, kAcceptor) : all.listener().reject(request, {});
    });
  }
  void accept() {
    acceptor_->with_end([](ConnectionEnd& end) {
      if (end.state() == ConnectionEnd::State::asked) end.accept({});
    });
  }
  void shut_down(End& end) {
    end.with_end([](ConnectionEnd& its) { its.shut_down(); });
  }
  void send() {
    End& end = some_end();
    if (end.is_connected && !end.is_over)
      end.send(input_.PickValueInArray<std::size_t>({1, 100, 3000, 90'000}));
  }
  void lie() {
    Liar* const liar = liars_[input_.ConsumeIntegralInRange<std::size_t>(0, 1)].get();
    if (liar == nullptr) return replace_liar();
    const auto to = input_.ConsumeIntegralInRange<std::uint64_t>(0, kAll.size() - 1);
    const std::uint64_t id = input_.ConsumeBool() ? kId : fuzz::near<std::uint64_t>(input_, kId);
    connection::Message message{
        .kind = static_cast<connection::MessageKind>(input_.ConsumeIntegralInRange<int>(0, 7)), .id = id};
    const auto address = connection::encode_address(input_.PickValueInArray(kAll));
    std::vector<std::byte> data(address.begin(), address.end());
    if (input_.ConsumeBool()) data.resize(input_.PickValueInArray<std::size_t>({0, 1, 19, 21, 256}));
    message.data = data;
    const connection::MessageBytes made = connection::encode(message);
    std::vector<std::byte> bytes(made.bytes.begin(),
                                 made.bytes.begin() + static_cast<std::ptrdiff_t>(made.size));
    if (input_.ConsumeProbability<float>() < 0.2f)
      bytes.resize(input_.PickValueInArray<std::size_t>({0, 8, 15, 273, 5000, 90'000}));
    const bool internal = input_.ConsumeProbability<float>() < 0.8f;
    if (!internal && !bytes.empty()) bytes.front() = liar->engine.name().ip().back();
    const std::uint64_t tag = input_.ConsumeProbability<float>() < 0.9f ? connection::kTag : 0;
    liar->say(to, std::move(bytes), tag, input_.ConsumeProbability<float>() < 0.9f ? id : id + 1, internal);
  }

  FuzzedDataProvider& input_;
  test::FakeClock clock_;
  test::FakeNetwork network_{clock_, 1};
  std::uint64_t epoch_ = 0;
  std::unique_ptr<Passive> passive_;
  std::unique_ptr<End> asker_;
  std::unique_ptr<End> acceptor_;
  std::array<std::unique_ptr<Liar>, 2> liars_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kInputMax = 1024;  // every operation keeps its buffer
  FuzzedDataProvider input(data, size < kInputMax ? size : kInputMax);
  ConnectionHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
