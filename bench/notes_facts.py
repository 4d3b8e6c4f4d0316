"""What the notes of `./run bench notes` know, and what they are asked: a person's life, invented for this benchmark.

Each fact is asked in other words than it is told in, and in its own. What is asked in vain is of the same kind, and
told nowhere.
"""

from typing import NamedTuple


class Fact(NamedTuple):
    """Something told once, in a note of this title; a question in other words, and one in words of its own."""

    title: str
    told: str
    asked: str
    plainly: str


FACTS = (
    Fact(
        "Heating",
        "Mr. Okafor mended the boiler in March and charged 240 euros.",
        "who repaired our heating and for how much?",
        "who mended the boiler?",
    ),
    Fact(
        "Passport",
        "My passport is in the blue folder behind the atlas.",
        "where do I keep my travel document?",
        "where is my passport?",
    ),
    Fact(
        "Allergies",
        "Penicillin gives Ida a rash, the doctor said never again.",
        "which medicine must Ida not take?",
        "what gives Ida a rash?",
    ),
    Fact(
        "Car",
        "The winter tyres are stored at Baumann's garage in Linden Street.",
        "where did I leave the snow tires?",
        "where are the winter tyres?",
    ),
    Fact(
        "Bees",
        "The second hive lost its queen in June and was joined with the first.",
        "what happened to the second beehive?",
        "which hive lost its queen?",
    ),
    Fact(
        "Library",
        "Our library card expires on the ninth of October.",
        "until when can we borrow books?",
        "when does the library card expire?",
    ),
    Fact(
        "Roof",
        "The roofer found three cracked tiles above the nursery.",
        "what was wrong with the roof?",
        "what did the roofer find?",
    ),
    Fact(
        "Piano",
        "The piano tuner comes twice a year and wants to be paid in cash.",
        "how does the man who tunes the piano like to be paid?",
        "how often does the piano tuner come?",
    ),
    Fact(
        "Garden",
        "Tomatoes on the south wall did best with eggshells in the soil.",
        "what helped the tomatoes grow?",
        "tomatoes south wall",
    ),
    Fact(
        "Insurance",
        "The household insurance covers bicycles only if they are locked indoors.",
        "is a stolen bike covered by our policy?",
        "does the household insurance cover bicycles?",
    ),
    Fact(
        "Grandmother",
        "Grandmother hid her ring in a tin of buttons before the move.",
        "where is granny's jewellery?",
        "where did grandmother hide her ring?",
    ),
    Fact(
        "Wifi",
        "The guest network is called Heron and its word is marmalade-seven.",
        "what is the password for visitors' internet?",
        "guest network name",
    ),
    Fact(
        "School",
        "Parents' evening with Mrs. Quist is on the first Tuesday of November.",
        "when do we meet the teacher?",
        "when is parents' evening?",
    ),
    Fact(
        "Dentist",
        "Dr. Halloran wants to see the crown again after six weeks.",
        "when must I go back to have my tooth checked?",
        "what does Dr. Halloran want to see?",
    ),
    Fact(
        "Bread",
        "The rye loaf needs eighteen hours in the refrigerator before baking.",
        "how long does the dough rest in the cold?",
        "how long does the rye loaf need?",
    ),
    Fact(
        "Mortgage",
        "The bank fixed our mortgage at 2.9 percent until 2031.",
        "what interest do we pay on the house loan?",
        "at how many percent is the mortgage fixed?",
    ),
    Fact(
        "Dog",
        "Bruno is afraid of thunder and hides in the bathtub.",
        "what does the dog do in a storm?",
        "what is Bruno afraid of?",
    ),
    Fact(
        "Train",
        "With the night train one arrives in Vienna at six in the morning.",
        "how early does the sleeper get to Austria's capital?",
        "when does the night train arrive in Vienna?",
    ),
    Fact(
        "Camera",
        "The old Leica leaks light through the shutter curtain.",
        "what is broken on my camera?",
        "what is wrong with the old Leica?",
    ),
    Fact(
        "Neighbours",
        "The Petrovs above us water our plants when we are away.",
        "who looks after the flowers during our holidays?",
        "who waters our plants?",
    ),
    Fact(
        "Running",
        "My knee hurts only when I run downhill on asphalt.",
        "in which situation do I get joint pain while jogging?",
        "when does my knee hurt?",
    ),
    Fact(
        "Wine",
        "The cellar is too warm in August: move the bottles to the pantry.",
        "what should I do with the wine in summer?",
        "is the cellar too warm?",
    ),
    Fact(
        "Taxes",
        "The accountant needs all receipts before the end of February.",
        "by when does my tax adviser want the invoices?",
        "what does the accountant need?",
    ),
    Fact(
        "Choir",
        "The choir rehearses in the chapel because the hall is being painted.",
        "why do the singers practise in another place?",
        "where does the choir rehearse?",
    ),
    Fact(
        "Kitchen",
        "The dishwasher trips the fuse if the oven is on at the same time.",
        "which two appliances must not run together?",
        "when does the dishwasher trip the fuse?",
    ),
    Fact(
        "Hiking",
        "The hut below the glacier takes no cards and no reservations.",
        "can I book a bed in the mountain shelter?",
        "does the hut take cards?",
    ),
    Fact(
        "Lisbon",
        "In Lisbon we stayed with Teresa, two floors above a fado bar.",
        "at whose place did we sleep in Portugal?",
        "where did we stay in Lisbon?",
    ),
    Fact(
        "Chess",
        "Against the Caro-Kann I lost because I castled too late.",
        "what was my mistake in that chess game?",
        "why did I lose against the Caro-Kann?",
    ),
    Fact(
        "Printer",
        "The printer only wakes up when its cable is pulled out and put back.",
        "how do I get the printer to work again?",
        "how does the printer wake up?",
    ),
    Fact(
        "Violin",
        "Mara's violin was made in Mittenwald around 1890.",
        "how old is Mara's instrument?",
        "where was Mara's violin made?",
    ),
    Fact(
        "Recipe",
        "For the curry, roast the cumin before grinding it.",
        "how should the spice be prepared?",
        "how to roast cumin for the curry",
    ),
    Fact(
        "Cat",
        "The vet put Minka on a diet of 45 grams a day.",
        "how much food may the cat have?",
        "what diet did the vet put Minka on?",
    ),
    Fact(
        "Keys",
        "The spare key of the cabin hangs inside the well house.",
        "how can we get in if we forget the key of our hut?",
        "where does the spare key of the cabin hang?",
    ),
    Fact(
        "Bicycle",
        "The chain of the red bicycle was replaced after 4,000 kilometres.",
        "when did I change the chain?",
        "when was the chain of the red bicycle replaced?",
    ),
    Fact(
        "Attic",
        "Wasps were nesting behind the chimney in the attic last summer.",
        "which insects did we have under the roof?",
        "where were the wasps nesting?",
    ),
    Fact(
        "Work",
        "Jonas leaves the team at Easter to build wind turbines in Denmark.",
        "who of my colleagues is going abroad?",
        "when does Jonas leave the team?",
    ),
    Fact(
        "Glasses",
        "The optician measured minus 2.25 on the left eye.",
        "how short-sighted am I?",
        "what did the optician measure on the left eye?",
    ),
    Fact(
        "Boat",
        "The harbour master gave us berth 17 until the regatta.",
        "where is our sailing boat moored?",
        "which berth did the harbour master give us?",
    ),
    Fact(
        "Birthday",
        "For her seventieth birthday mother wishes for a telescope.",
        "what present does mum want?",
        "what does mother wish for her birthday?",
    ),
    Fact(
        "Coffee",
        "The grinder jams with oily beans, so buy light roasts.",
        "which coffee should I get for the machine?",
        "which beans jam the grinder?",
    ),
    Fact(
        "Theatre",
        "We have seats in the second balcony for The Seagull.",
        "for which play did we get tickets?",
        "where are our seats for The Seagull?",
    ),
    Fact(
        "Sourdough",
        "The starter is called Otto and lives on spelt flour.",
        "what do I feed the sourdough?",
        "what is the starter called?",
    ),
    Fact(
        "Doctor",
        "My blood pressure was 145 over 95 at the last check.",
        "what did the physician measure?",
        "how high was my blood pressure?",
    ),
    Fact(
        "Ski",
        "The bindings were set for 78 kilograms by the shop in Davos.",
        "for which weight are my skis adjusted?",
        "who set the ski bindings?",
    ),
    Fact(
        "Rent",
        "The landlord will raise the rent by forty francs from July.",
        "how much more will the flat cost?",
        "by how much will the landlord raise the rent?",
    ),
    Fact(
        "Password",
        "The safe opens with the year in which the bridge was built.",
        "what is the combination of the safe?",
        "how does the safe open?",
    ),
    Fact(
        "Concert",
        "The encore was a waltz that nobody in the row had heard before.",
        "what was played at the end of the concert?",
        "what was the encore?",
    ),
    Fact(
        "Apples",
        "The Boskoop tree bears fruit only every other year.",
        "why are there no apples this autumn?",
        "how often does the Boskoop tree bear fruit?",
    ),
    Fact(
        "Swimming",
        "Lena swims a hundred metres in seventy-one seconds.",
        "how fast is Lena in the water?",
        "how fast does Lena swim a hundred metres?",
    ),
    Fact(
        "Moving",
        "The piano did not fit through the stairwell and came in by crane.",
        "how did the heavy instrument get into the apartment?",
        "how did the piano get through the stairwell?",
    ),
    Fact(
        "Vaccination",
        "The tetanus shot is good until 2033.",
        "when do I need the next jab against lockjaw?",
        "until when is the tetanus shot good?",
    ),
    Fact(
        "Stove",
        "The chimney sweep forbade us to burn the wet birch.",
        "what wood may not go into the fireplace?",
        "what did the chimney sweep forbid?",
    ),
    Fact(
        "Language",
        "My Polish teacher says that I mix up the cases after numbers.",
        "what do I get wrong when I speak Polish?",
        "what does my Polish teacher say about cases?",
    ),
    Fact(
        "Flight",
        "On the way back we change planes in Helsinki with fifty minutes to spare.",
        "where is our layover?",
        "where do we change planes?",
    ),
    Fact(
        "Museum",
        "The museum closes the dinosaur hall for restoration in May.",
        "which part of the exhibition cannot be visited?",
        "which hall does the museum close in May?",
    ),
    Fact(
        "Honey",
        "Lime-blossom honey sold out first, at nine euros a jar.",
        "which of our products was most popular at the market?",
        "which honey sold out first?",
    ),
    Fact(
        "Fence",
        "The deer came through the gap beside the compost heap.",
        "how did animals get into the garden?",
        "where did the deer come through?",
    ),
    Fact(
        "Software",
        "The backup failed because the disk was formatted for another system.",
        "why was nothing saved?",
        "why did the backup fail?",
    ),
    Fact(
        "Painting",
        "The blue in the hallway is Farrow number 30, two coats.",
        "which colour did we use in the corridor?",
        "which blue is in the hallway?",
    ),
    Fact(
        "Emergency",
        "If the lift stops, call Marek, who lives in the basement.",
        "who helps when the elevator is stuck?",
        "whom to call if the lift stops?",
    ),
)

IN_VAIN = (
    "what is the name of my sister's horse?",
    "how much did the new sofa cost?",
    "when does the ferry to Gotland leave?",
    "who won the table tennis tournament?",
    "which hotel did we book in Kyoto?",
    "what is the licence plate of the van?",
    "how many chapters has my novel?",
    "where did I bury the time capsule?",
    "what did the lawyer say about the will?",
    "which yoga studio has evening classes?",
    "what is Uncle Ray's telephone number?",
    "how tall is the new bookshelf?",
    "what is the recipe of the cheesecake?",
    "when is the wedding of Aisha and Tom?",
    "who borrowed my drill?",
    "which mushrooms did we find in the forest?",
    "how much does a kilo of saffron cost?",
    "what was the score of the final?",
    "which lens did I sell to the collector?",
    "when was the aquarium cleaned?",
    "what does the tattoo on his arm mean?",
    "which university accepted my nephew?",
    "where can one rent kayaks?",
    "what is the maximum load of the trailer?",
    "how long was the power cut on Sunday?",
    "who painted the portrait in the hall of the embassy?",
    "what was stolen from the office?",
    "which perfume does my wife wear?",
    "what did we name the canary?",
    "when does the drone licence run out?",
    "what is the diameter of the drain pipe?",
    "who sings the lullaby on the tape?",
    "which podcast did the carpenter recommend?",
    "what is the frequency of the pirate radio?",
    "how hot was the sauna?",
    "why did the orchestra dismiss its conductor?",
    "which chess club is in Bremen?",
    "what is the dosage of the worming tablets?",
    "how many calories are in the lasagne?",
    "where did grandfather serve in the navy?",
)

# (title of a note that says little else, what people type)
TITLES = (
    ("Passport.md", "passport"),
    ("Tax return 2025.md", "tax return"),
    ("Meeting with Yusuf.md", "yusuf meeting"),
    ("Packing list.md", "packing list"),
    ("Reading list.md", "reading list"),
    ("Wifi at the cabin.md", "wifi cabin"),
    ("Ikea shopping.md", "ikea"),
    ("Goals for spring.md", "spring goals"),
    ("Vaccination record.md", "vaccination"),
    ("Floor plan.md", "floor plan"),
)

# (told, typed with a slip of the fingers)
TYPOS = (
    ("The physiotherapist is called Agnieszka Wrobel.", "physiotherapst"),
    ("Bring the thermometer to the greenhouse.", "thermomter greenhouse"),
    ("The accordion is at the repair shop.", "acordion"),
    ("Rhubarb grows behind the shed.", "rubarb"),
    ("Our architect is Mr. Szymanski.", "architekt"),
    ("The kaleidoscope was a present from Aunt Berta.", "kaleidoscop"),
    ("Reserve the badminton court on Friday.", "badmington"),
    ("The pharmacist had no magnesium.", "pharmasist"),
    ("Zucchini bread needs less sugar.", "zuchini"),
    ("The questionnaire is due on Monday.", "questionaire"),
)

# (told, asked) in scripts and languages that the default embedder reads little or nothing of
SCRIPTS = (
    ("พ่อชอบดื่มชาเขียวตอนเช้า", "ชาเขียว"),
    ("会议改到星期五下午三点", "会议 星期五"),
    ("母の誕生日は六月です", "誕生日"),
    ("Бабушка хранит варенье в погребе", "где варенье?"),
    ("Ο γιατρός είπε να πίνω περισσότερο νερό", "γιατρός νερό"),
    ("المفتاح تحت سجادة الباب", "المفتاح"),
    ("הרכבת יוצאת בשמונה בבוקר", "רכבת"),
    ("할머니는 부산에 사신다", "할머니 부산"),
    ("បងប្រុសខ្ញុំធ្វើការនៅភ្នំពេញ", "ភ្នំពេញ"),
    ("Bố tôi thích uống trà sen", "trà sen"),
    ("मेरी बहन दिल्ली में रहती है", "बहन दिल्ली"),
    ("ଆମ ଘର ନଦୀ କୂଳରେ ଅଛି", "ନଦୀ"),
)
