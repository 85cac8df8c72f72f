#include "shm/greeting.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace cluster::shm {
namespace {

constexpr std::size_t kTagSize = sizeof(seal::Tag);
constexpr std::size_t kHelloMax = 256;  ///< the longest hello, without its tag

}  // namespace

std::string plain_name(const char* kind, std::uint32_t version, const SocketAddress& endpoint) {
  std::string name = kind + std::to_string(version) + "/" + endpoint.text();
  // Several interfaces may have the same link-local address, so the name contains the scope, too.
  if (endpoint.scope() != 0) name += "%" + std::to_string(endpoint.scope());
  return name;
}

std::vector<KeyedName> keyed_names(const std::string& plain, const seal::JobKeys& keys) {
  std::vector<KeyedName> names;
  if (keys.empty()) names.push_back({plain, nullptr});
  for (const auto& key : keys) names.push_back({seal::hidden_socket_name(*key, plain), key});
  return names;
}

KeyedSocket connect_to(const std::vector<KeyedName>& names, bool expected, std::string& reason, bool* full) {
  reason = "the key cannot be used";
  bool any_full = false;
  for (const KeyedName& name : names) {
    bool its = false;
    if (os::LocalSocket socket = os::connect_to_own(name.socket, expected, reason, &its))
      return {std::move(socket), name.key};
    any_full |= its;
  }
  if (full != nullptr) *full = any_full;
  return {};
}

KeyedListener KeyedListener::listen(const std::vector<KeyedName>& names, std::string& reason) {
  KeyedListener all;
  if (names.size() > 1) all.wait_set_ = os::WaitSet::open();
  if (names.empty()) reason = "the key cannot be used";
  for (const KeyedName& name : names) {
    os::LocalSocket socket = os::listen_as_own(name.socket, reason);
    if (!socket) return {};
    if (names.size() > 1 && (all.wait_set_ == nullptr || !all.wait_set_->add(socket.descriptor(), nullptr))) {
      reason = "there are no descriptors left";
      return {};
    }
    all.sockets_.push_back({std::move(socket), name.key});
  }
  return all;
}

KeyedSocket KeyedListener::accept(std::string& reason, bool* exhausted) const {
  for (const KeyedSocket& each : sockets_) {
    os::LocalSocket socket = each.socket.accept(reason, exhausted);
    if (socket || !reason.empty()) return {std::move(socket), each.key};
  }
  return {};
}

HelloSender::HelloSender(const KeyedSocket& connection, ConstBytes hello, os::Descriptor file, Random& random)
    : hello_(hello.begin(), hello.end()), file_(std::move(file)) {
  if (connection.key == nullptr) return;
  proof_.emplace(connection.key, connection.socket.called_name(), random);
  hello_.resize(hello.size() + kTagSize);
}

bool HelloSender::begin(const os::LocalSocket& socket, std::string& reason) {
  if (!proof_) return send_hello(socket, reason);
  const seal::ProofRequest request = proof_->request();
  if (socket.send(as_bytes(&request, sizeof request))) return true;
  reason = "the peer has closed the connection";
  return false;
}

HelloSender::State HelloSender::advance(os::LocalSocket& socket) {
  if (state_ != State::waiting) return state_;
  seal::ProofAnswer answer;
  std::string reason;
  switch (socket.receive(as_bytes(&answer, sizeof answer))) {
    case os::LocalSocket::Receipt::nothing: return state_;
    case os::LocalSocket::Receipt::message:
      if (!proof_->verify_answer(answer) || !send_hello(socket, reason)) state_ = State::failed;
      return state_;
    case os::LocalSocket::Receipt::end:
    case os::LocalSocket::Receipt::misfit: break;
  }
  return state_ = State::failed;
}

bool HelloSender::send_hello(const os::LocalSocket& socket, std::string& reason) {
  if (proof_) {
    const std::size_t size = hello_.size() - kTagSize;
    const seal::Tag tag = proof_->sign(ConstBytes(hello_).first(size));
    std::memcpy(hello_.data() + size, tag.data(), kTagSize);
  }
  if (!socket.send(hello_, file_, reason)) return false;
  file_.reset();
  state_ = State::sent;
  return true;
}

HelloReceiver::HelloReceiver(KeyedSocket connection, Random& random) : socket_(std::move(connection.socket)) {
  if (connection.key != nullptr) proof_.emplace(connection.key, socket_.answering_name(), random);
}

HelloReceiver::Receipt HelloReceiver::receive(Bytes hello, os::Descriptor& file) {
  if (!proof_) return socket_.receive(hello, &file);
  if (!answered_) {
    const Receipt receipt = answer();
    if (receipt != Receipt::message) return receipt;
  }
  return receive_signed(hello, file);
}

/// Answers the connector's request. Returns `message` if the answer was sent. If so, the next message is the
/// hello.
HelloReceiver::Receipt HelloReceiver::answer() {
  seal::ProofRequest request;
  const Receipt receipt = socket_.receive(as_bytes(&request, sizeof request));
  if (receipt != Receipt::message) return receipt;
  seal::ProofAnswer answer;
  if (!proof_->answer(request, answer)) return Receipt::misfit;
  if (!socket_.send(as_bytes(&answer, sizeof answer))) return Receipt::end;
  answered_ = true;
  return Receipt::message;
}

HelloReceiver::Receipt HelloReceiver::receive_signed(Bytes hello, os::Descriptor& file) {
  std::array<std::byte, kHelloMax + kTagSize> space;
  if (hello.size() > kHelloMax) return Receipt::misfit;
  const Bytes message = Bytes(space).first(hello.size() + kTagSize);
  const Receipt receipt = socket_.receive(message, &file);
  if (receipt != Receipt::message) return receipt;
  seal::Tag tag;
  std::memcpy(tag.data(), message.data() + hello.size(), kTagSize);
  if (!proof_->verify(message.first(hello.size()), tag)) {
    file.reset();
    forged_ = true;
    return Receipt::misfit;
  }
  std::copy_n(message.begin(), hello.size(), hello.begin());
  return Receipt::message;
}

}  // namespace cluster::shm
