"""Debian's Chromium, driven by its own driver through Selenium, and what tests of the page look for in it."""
import os
import shutil
import tempfile
import time

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

WIDTHS = {"wide": (1360, 900), "tablet": (820, 1100), "phone": (390, 844)}


class Chromium:
    def __init__(self, address):
        self.address = address
        self._profile = tempfile.mkdtemp(prefix="page-test-")
        options = Options()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
                     f"--user-data-dir={self._profile}", "--window-size=1360,900", "--disable-extensions", "--force-device-scale-factor=1",
                     "--proxy-server=direct://", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_page_load_timeout(60)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self._profile, ignore_errors=True)

    def go(self, path):
        self.driver.get(self.address.rstrip("/") + path)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector="body"):
        """In one step, so that a part that is renewed meanwhile does no harm; empty if there is none."""
        return self.driver.execute_script("const e = document.querySelector(arguments[0]); return e ? e.innerText : '';", selector)

    def count(self, selector):
        return self.driver.execute_script("return document.querySelectorAll(arguments[0]).length;", selector)

    def fill(self, name, text):
        field = self.one(f"[name={name}]")
        field.clear()
        field.send_keys(text)

    def submit(self, selector):
        """Presses the button and waits for the page that follows."""
        button = self.one(selector)
        button.click()
        self.until(30, lambda: self._is_gone(button))

    @staticmethod
    def _is_gone(element):
        try:
            return element.tag_name is None
        except (StaleElementReferenceException, WebDriverException):
            return True

    def until(self, seconds, condition, what=""):
        """Seconds until the condition held, asked again and again."""
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > seconds:
                raise AssertionError(f"{what or condition}: not within {seconds} s; the page says: {self.text()[:1500]}")
        return time.monotonic() - started

    def log_in(self, user, password):
        self.driver.delete_all_cookies()
        self.go("/login")
        self.fill("user", user)
        self.fill("password", password)
        self.submit("form.login button")

    def browser_errors(self):
        """What the browser itself complains of: scripts and styles that the policy refuses, files that are missing."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and "status of 4" not in entry["message"]]

    def foreign_requests(self):
        """Addresses of other hosts that the page asked for something."""
        names = self.driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name);")
        return [name for name in names if not name.startswith(self.address)]

    def picture(self, directory, name, width, whole=True):
        """A screenshot at one of WIDTHS."""
        self.driver.set_window_size(*WIDTHS[width])
        metrics = {"width": WIDTHS[width][0], "height": WIDTHS[width][1], "deviceScaleFactor": 1, "mobile": width == "phone"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        if whole:
            metrics["height"] = max(WIDTHS[width][1], min(2400, self.driver.execute_script("return document.documentElement.scrollHeight;")))
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        path = os.path.join(directory, f"{name}_{width}.png")
        self.driver.save_screenshot(path)
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        return path

    def overflows(self):
        """Whether the page as a whole scrolls sideways."""
        return self.driver.execute_script("return document.documentElement.scrollWidth > document.documentElement.clientWidth;")
