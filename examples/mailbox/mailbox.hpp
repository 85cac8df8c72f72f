// mailbox.h for C++17 and later: what a function opens, a destructor closes; types of values are those of the language. Threads
// are those of the standard library. Errors end the program, as in C: nothing is thrown.
#ifndef EXAMPLES_MAILBOX_HPP
#define EXAMPLES_MAILBOX_HPP

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "mailbox.h"

namespace mail {

// One of it in main(); it ends after all threads, messages and mailboxes.
class Session {
 public:
  Session(int argc, char** argv, const char* about) { mailbox_open(argc, argv, about); }
  ~Session() { mailbox_close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  int rank() const { return mailbox_rank(); }
  int size() const { return mailbox_size(); }
};

template <class T>
constexpr message_type type_of() {
  static_assert(std::is_same_v<T, char> || std::is_same_v<T, std::int32_t> ||
                    std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>,
                "messages carry char, int32_t, int64_t and double");
  if (std::is_same_v<T, char>) return kMessageChar;
  if (std::is_same_v<T, std::int32_t>) return kMessageInt32;
  return std::is_same_v<T, std::int64_t> ? kMessageInt64 : kMessageDouble;
}

class Message {
 public:
  Message() : message_(message_create()) {}
  ::message* get() const { return message_.get(); }
  void clear() { message_clear(get()); }
  std::size_t count() const { return message_count(get()); }

  template <class T>
  Message& pack(const T* values, std::size_t count) {
    message_pack(get(), type_of<T>(), values, count);
    return *this;
  }
  template <class T>
  Message& pack(const T& value) {
    return pack(&value, 1);
  }
  template <class T>
  Message& pack(const std::vector<T>& values) {
    return pack(values.data(), values.size());
  }
  Message& pack(const std::string& text) { return pack(text.data(), text.size()); }

  // The next item: one value, a std::vector or a std::string.
  template <class T>
  T unpack() {
    if constexpr (std::is_arithmetic_v<T>) {
      T value;
      message_unpack(get(), type_of<T>(), &value, 1);
      return value;
    } else {
      T values(count(), {});
      message_unpack(get(), type_of<typename T::value_type>(), values.data(), values.size());
      return values;
    }
  }

 private:
  struct Destroy {
    void operator()(::message* m) const { message_destroy(m); }
  };
  std::unique_ptr<::message, Destroy> message_;
};

class Mailbox {
 public:
  static Mailbox create(const std::string& name) { return Mailbox(mailbox_create(name.c_str())); }
  static Mailbox clone(const std::string& name) { return Mailbox(mailbox_clone(name.c_str())); }
  void post(Message& m) { mailbox_post(mailbox_.get(), m.get()); }
  void retrieve(Message& m) { mailbox_retrieve(mailbox_.get(), m.get()); }

 private:
  struct Destroy {
    void operator()(::mailbox* m) const { mailbox_destroy(m); }
  };
  explicit Mailbox(::mailbox* m) : mailbox_(m) {}
  std::unique_ptr<::mailbox, Destroy> mailbox_;
};

class Semaphore {
 public:
  explicit Semaphore(unsigned value) { semaphore_open(&semaphore_, value); }
  ~Semaphore() { sem_destroy(&semaphore_); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  void p() { semaphore_p(&semaphore_); }
  void v() { semaphore_v(&semaphore_); }

 private:
  sem_t semaphore_;
};

}  // namespace mail

#endif
