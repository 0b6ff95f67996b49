/**
 * The right edges of the ziggurat's 256 strips under exp(-x), as little-endian doubles in base 64.
 *
 * They are those of `evenly.sim.kernels.rng`, bit for bit: browsers compute exp and log with different last digits,
 * and a link must give the same run in all of them. A test compares them with Python's.
 */
const EDGES = [
  "1V2/lOxkIUDNM12LnViwP0xDW0my1ro/oYlbqTWTwT/cJkrl5iLFP0B3wvuQUMg/zbR579E4yz/Mum232OzNP+taxknwO9A/MfXWJNtw0T8C",
  "JdqQApjSP6VtPf6Is9M/B/0LxhXF1D+ySQKd+M3VP7Qqp/BAz9Y/F88X2s3J1z9yX9NUWb7YP9s2IlWArdk/ElFdvsiX2j/Zot3dpX3bP6I+",
  "jNd7X9w/U3vxTaI93T98cvF4ZhjeP9BOX88M8N4/MjFoXdLE3z/udGrtdkvgP5SAm0dIs+A/SPVJh/MZ4T8630vrjH/hP4NJPukm5OE/zP44",
  "ZdJH4j+rZyPhnqriP+zZJqWaDOM/o4Ft4tJt4z9DYiHRU87jP+tmcMooLuQ/t+Y1X1yN5D84C81r+OvkP/NueCkGSuU/pL64PY6n5T93Lt3H",
  "mATmP4loDG0tYeY/7aj6YlO95j9lkHl5ERnnPx55ByNudOc/HoF+fG/P5z9F1f5TGyroP5nhKy93hOg/2MTQUIje6D/0of29UzjpP+gSrULe",
  "kek/bwP/dSzr6T/8hxS+QkTqPxLSllMlneo/eyTyRNj16j9Ol0x5X07rPz2PP7O+pus/Tf5Zk/n+6z9T0nCaE1fsP5BawisQr+w/sObwjvIG",
  "7T9Da9jxvV7tPw2QQmp1tu0/tTF89xsO7j/7D8+DtGXuPxob4uVBve4/V5QC4sYU7z9t/lcrRmzvP1mpBGXCw+8/tTyaEZ8N8D8/sQ32XTnw",
  "P9V2chwfZfA/TwBLu+OQ8D8UAXEDrbzwP0QveiB86PA/86sXOVIU8T+cfXBvMEDxP9l/d+EXbPE/dCM9qQmY8T9hUj3dBsTxP8HEqZAQ8PE/",
  "5A2x0ycc8j8Io8KzTUjyP34Y0DuDdPI/iM2LdMmg8j88O6VkIc3yPwAXAxGM+fI/8XX7fAom8z+BG4qqnVLzP9EahZpGf/M/3u/PTAas8z9P",
  "M43A3djzP6YJT/TNBfQ/smxG5tcy9D+JbHGU/F/0P6aDyPw8jfQ/hxhrHZq69D/ORcv0FOj0P98A2YGuFfU/3LUsxGdD9T8LbzG8QXH1P92c",
  "Tms9n/U/GJMR1FvN9T8Kz1b6nfv1PxIac+MEKvY/cJtclpFY9j/S69MbRYf2P8M8jX4gtvY/7KVZyyTl9j/fqVARUxT3PwAE+mGsQ/c/E9F3",
  "0TFz9z/uI7F25KL3P9sXfWvF0vc/W3LOzNUC+D8N5t+6FjP4P8oIYVmJY/g/Nw+kzy6U+D93YMxICMX4P/cU/vMW9vg/xXOOBFwn+T9ugjWy",
  "2Fj5P9i7QDmOivk/QQPH2n28+T816d3cqO75PxFZ0IoQIfo/dMZWNbZT+j/z8tAym4b6P15lgd/Aufo/46zKnSjt+j+Zi27W0yD7PyYlz/jD",
  "VPs/mk8ye/qI+z/0JQfbeL37P2n9LZ1A8vs/EeBCTlMn/D+IseqCslz8P+AjI9hfkvw/UaWV81zI/D9lce2Dq/78P5PyMEFNNf0/5KMe7UNs",
  "/T/wpI1TkaP9P2Q10ko32/0/gVAmtDcT/j83pBZ8lEv+P2Uj9JpPhP4/XnZKFWu9/j9OkVv86Pb+P2a8oG7LMP8/tl5RmBRr/z/M4e+zxqX/",
  "P8AJ3Qrk4P8/yBH5ejcOAEAPORHvNCwAQJckkp5rSgBAzyYRz9xoAEADrTrPiYcAQA3IM/dzpgBAY5QAqZzFAECrz+9QBeUAQMLvC2avBAFA",
  "PhWSapwkAUAfOm/szUQBQLQExIVFZQFAka5v3QSGAUAUeKKnDacBQE4qeKZhyAFAZDObqgLqAUCV9PCT8gsCQEPlT1IzLgJArTtA5sZQAkCZ",
  "2sdhr3MCQB5TQunulgJARNtFtIe6AkBkLZYOfN4CQFhZJlnOAgNAw6cqC4EnA0BZyTuzlkwDQEqojPgRcgNAN1E0nPWXA0B3i416RL4DQMPe",
  "rYwB5QNAoO716S8MBEDrQr3J0jMEQCDJG4XtWwRAJpTTmIOEBEBAoV2nmK0EQBuxHHsw1wRA/JS5CE8BBUClqqxx+CsFQE6n+AYxVwVAVUQb",
  "TP2CBUD84Dj6Ya8FQJK9iANk3AVAbRgIlwgKBkCJLnskVTgGQCf0w2BPZwZA5EiXSv2WBkAUe5ovZccGQP0k9LGN+AZADtJczn0qB0C5cb3i",
  "PF0HQO9xa7XSkAdAyXYUfUfFB0AIFG7po/oHQLm+wCzxMAhAN3NoBjloCECgW2nOhaAIQIs2O4Li2QhAOXXz0loUCUAEKvw0+08JQM4ajfHQ",
  "jAlA4NkkOurKCUBu8Uk+VgoKQDFM6EMlSwpA34atwmiNCkC6RdiCM9EKQP+1A8CZFgtABeqRULFdC0BU2nbSkaYLQG3vS95U8QtAneDCQRY+",
  "DEDqyMhC9IwMQHWp8uwP3gxAuzgna40xDUDiO+xvlIcNQJXxTq9Q4A1AVgkZbvI7DkC3g/Mqr5oOQEDqUGfC/A5AnfeRl25iD0DcxvZD/ssP",
  "QCnsYrPiHBBA6o71ixFWEEBJpcvNwZEQQJtIXXgx0BBAoZJDA6gREUAkRHVneFYRQNDCs7wDnxFAd/rJoLzrEUCakVm2Kz0SQKCqSa71kxJA",
  "6xFEiuPwEkBY98wn7lQTQFy4yMdOwRNAXRPkZpc3FEDMUUfN17kUQPFzzzzYShVAzhNz4XruFUBuv0ttZ6oWQCvG6tZQhxdAFu3y5p+TGECC",
  "e0gN3OkZQPpx2lGewxtAg7t+KdnJHkA=",
].join("");

export const STRIPS = 256;

/** The edges; the base strip, which has a tail, is as wide as a box of the same area. */
export function ziggurat() {
  const bytes = Uint8Array.from(atob(EDGES), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: STRIPS }, (_, strip) => view.getFloat64(8 * strip, true));
}
