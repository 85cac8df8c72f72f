#include "shm/greeting.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace cluster::shm {
namespace {

constexpr std::size_t kTagSize = sizeof(seal::Tag);
constexpr std::size_t kHelloMax = 256;  ///< of either kind, without its tag

HelloReceiver::Receipt receipt_of(os::LocalSocket::Receipt receipt) {
  switch (receipt) {
    case os::LocalSocket::Receipt::message: return HelloReceiver::Receipt::hello;
    case os::LocalSocket::Receipt::nothing: return HelloReceiver::Receipt::nothing;
    case os::LocalSocket::Receipt::end: return HelloReceiver::Receipt::end;
    case os::LocalSocket::Receipt::misfit: break;
  }
  return HelloReceiver::Receipt::misfit;
}

}  // namespace

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
  reason = "it has closed the connection";
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
    seal::Tag tag;
    const std::size_t size = hello_.size() - kTagSize;
    if (!proof_->sign(ConstBytes(hello_).first(size), tag)) {
      reason = "the key cannot be used";
      return false;
    }
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
  if (!proof_) return receipt_of(socket_.receive(hello, file));
  if (!answered_) {
    const Receipt receipt = answer();
    if (receipt != Receipt::hello) return receipt;
  }
  return receive_signed(hello, file);
}

/// `hello`: that comes next.
HelloReceiver::Receipt HelloReceiver::answer() {
  seal::ProofRequest request;
  const os::LocalSocket::Receipt receipt = socket_.receive(as_bytes(&request, sizeof request));
  if (receipt != os::LocalSocket::Receipt::message) return receipt_of(receipt);
  seal::ProofAnswer answer;
  if (!proof_->answer(request, answer)) return Receipt::misfit;
  if (!socket_.send(as_bytes(&answer, sizeof answer))) return Receipt::end;
  answered_ = true;
  return Receipt::hello;
}

HelloReceiver::Receipt HelloReceiver::receive_signed(Bytes hello, os::Descriptor& file) {
  std::array<std::byte, kHelloMax + kTagSize> space;
  if (hello.size() > kHelloMax) return Receipt::misfit;
  const Bytes message = Bytes(space).first(hello.size() + kTagSize);
  const os::LocalSocket::Receipt receipt = socket_.receive(message, file);
  if (receipt != os::LocalSocket::Receipt::message) return receipt_of(receipt);
  seal::Tag tag;
  std::memcpy(tag.data(), message.data() + hello.size(), kTagSize);
  if (!proof_->verify(message.first(hello.size()), tag)) {
    file.reset();
    return Receipt::no_proof;
  }
  std::copy_n(message.begin(), hello.size(), hello.begin());
  return Receipt::hello;
}

}  // namespace cluster::shm
