"""Write sample.tsv: 200 short news items and advertisements, many of them edited copies of others.

Every text is written for this project; places, firms and people are invented. A line is an id, a tab and a
text. The stories below are not similar to each other. The forms (NEWS_FORMS, ADVERT_FORMS) give notices from one
template that are still different notices. The copies have typical edits of near duplicates: a changed number or
word, an added sentence, a corrected typo, a headline in capitals.

    python examples/make_sample.py [OUTPUT]

All random choices use random.Random.random(), so that every version of Python writes the same bytes.
"""

import random
import sys
from pathlib import Path

SEED = 1997
NUM_COPIES = 81

# One story per paragraph: the first line is the headline, the others are the body.
NEWS = """
Varnmouth ferry returns after winter refit
The car ferry Lady Orla left Varnmouth on Monday with 212 passengers aboard, her first crossing
since the engines were taken out in November. The operator, Northsound Lines, spent 4 million
crowns on the work. A second vessel stays in the yard until the end of April, so sailings on
Sundays remain suspended.

Council turns down tower beside Pellworth mill
Planners in Pellworth voted nine to four against a fourteen-storey block on the old mill meadow.
Councillor Ida Brandreth called the scheme handsome but in the wrong place. The developer, Castor
Homes, has eight weeks to appeal and would not say whether it means to.

Honey yield falls for third summer running
Beekeepers around Lake Immer report 11 kilograms a hive this year, little more than half of what
they took in the past. A cold May kept the swarms indoors while the lime trees flowered. Prices at
the autumn market are likely to rise, according to the keepers' union.

Tellmark Steel to close its oldest furnace
Tellmark Steel shuts its number two furnace in March and moves 340 workers to the rolling shop.
The plant was lit in 1958 and burns nearly twice as much coal as its younger neighbour. Nobody will
be dismissed, chief executive Roland Asker promised, though shift bonuses are going to shrink.

Lost violin found in railway locker
A violin built in 1823 that vanished from a concert hall last spring turned up in a luggage locker
at Ostrand Central. Cleaners noticed the case when the rental period ran out. Its owner, soloist
Mirela Dunai, played two bars on the platform to make sure it was the right one.

Dunmere keeper saves two penalties in cup upset
Second-division Dunmere put Corvale Athletic out of the Harbour Cup after a shoot-out that lasted
until a quarter past eleven. Goalkeeper Tam Oyelo stopped the third and fifth kicks. Coach Henrik
Sall said his side had practised nothing else all week. They meet Brindle Rovers in the last eight.

Central bank leaves lending rate at 3.25 percent
Governor Alma Reith and her six colleagues kept the key rate where it has been since June. Inflation
is close to the target but wages are rising faster than the bank likes, the minutes show. Most
analysts now expect a cut of a quarter point before midsummer.

Storm Odile cuts power to 18,000 homes
Gusts of 131 kilometres an hour brought down lines across the western dales during the night. Crews
from the grid company had restored about half of the connections by noon. Schools in Marrowby and
Tasselford stayed shut, and the coast road is blocked by a fallen poplar near the lighthouse.

Museum shows maps drawn by blind cartographer
The Quillburn Museum opens a room devoted to Edda Farrow, who lost her sight at thirty and went on
charting the estuary by rope and lead line. Visitors may touch copies of eleven sheets cast in
plaster. The exhibition runs to the second of October and admission is free on Thursdays.

Orchard disease reaches the Arven valley
Inspectors confirmed fire blight on nineteen pear trees at two farms below Arvenholt. The owners must
burn the wood within ten days. No nursery stock may leave the valley for the time being, a rule
that hurts exporters more than the illness itself, growers complain.

Saltry gets a night bus at last
From the first weekend in May a bus leaves Saltry market square every hour between midnight and five.
The town pays for a trial of one year. Students had collected 6,400 signatures, the longest petition
the mayor's office has ever carried up its stairs.

Robotics firm Hinge & Lever files for listing
Warehouse robot maker Hinge & Lever wants to sell a fifth of its shares on the Ostrand exchange this
autumn. Sales doubled to 96 million crowns last year while the loss narrowed to 7 million. Founder
Petra Vilks keeps a majority of the votes through a second class of stock.

Bakers' strike empties shelves in capital
Bread was scarce on Wednesday as the staff of four large bakeries walked out over weekend pay.
Supermarkets limited customers to two loaves each. Talks between the union and the employers resume
this evening in the presence of a mediator, the labour ministry announced.

Old observatory dome slides into place again
After nineteen years under tarpaulin the copper dome on Kestrel Hill turns once more. Volunteers
cast the missing rollers in a school workshop. The first public viewing, of Saturn if clouds allow,
is planned for Friday week; tickets cost three crowns and children need none.

Salmon count on the Ruddle highest since 1974
Wardens counted 5,318 salmon at the Ruddle weir between June and September. They credit the removal
of a disused sluice and the ban on netting in the mouth of the river. Otters have come back as well,
which not every angler regards as progress.

Court clears former treasurer of Westerloch
The district court found that Oskar Lindqvern, once treasurer of Westerloch, had been careless with
receipts but had taken nothing for himself. Prosecutors had asked for fourteen months. Outside the
building he thanked his daughter, who had sorted 30 boxes of paper for the defence.

Tram extension costs climb beyond estimate
Ostrand's tram line to the airport is going to cost 612 million crowns instead of 480 million, the
transport office admits. Wet clay under the cemetery wall and dearer rails are to blame. The line
should still open in the spring of the year after next.

Teenager swims the Immer from end to end
Fifteen-year-old Noor Aldane needed nine hours and 42 minutes for the 27 kilometres of Lake Immer,
faster than any woman before her. Her father rowed alongside with soup and a whistle. The cold was
fine, she told reporters, but the flies were dreadful.

Paper mill wins order for banknote stock
The Corvale paper mill will supply banknote paper to two countries in the south for five years. It
hires 45 people and adds a third drying line. Which countries they are the directors may not reveal
before the notes are in circulation.

Hospital wing named after first midwife
The new maternity wing of Dunmere General bears the name of Agnes Pryde, who delivered some 4,000
babies in the district before the first doctor settled there. Her bicycle hangs in the entrance. The
building has 26 beds, a roof garden and no corridor longer than forty paces.

Thieves take copper from village church roof
Half the roof of St Alder's in Nether Ruddock was stripped on Tuesday night while a wedding was being
celebrated in the barn next door. The parish puts the damage at 38,000 crowns. Police look for a
grey van with a broken rear lamp.

Chess federation bans phones in toilets
Players at the national championship must hand in their telephones before the first move and may not
collect them until they have signed the score sheet. Last year a promising junior consulted a program
behind a locked door. He has since taken up fencing.

Heat record broken twice in one afternoon
The weather station at Tasselford read 39.4 degrees at two o'clock and 39.9 an hour later. Gardeners
may not use hoses before Sunday, and trains run slowly lest the rails buckle. Meteorologists expect
thunder on Saturday and relief, if that is the word, from hail.

Publisher pulls cookbook with poisonous recipe
Larder & Quill asks readers to return its Hedgerow Kitchen because page 88 praises the leaves of
hemlock as a substitute for parsley. Nobody seems to have come to harm. The author blames a late
exchange of photographs and has promised the critics a very safe pudding.

Harbour dredging uncovers a medieval cog
A dredger working off Brindlehaven brought up oak planks that archaeologists date to about 1370. The
hull, 21 metres long, lies on its side under the mud with barrels of lime still in the hold. Work on
the container berth pauses for at least six weeks.

Startup promises milk without cows by spring
Fermentation company Pailworks says its yeast makes the two proteins that give cheese its stretch. A
pilot tank in Quillburn turns out 900 litres a week. Regulators have yet to decide what the drink may
be called; the dairy board insists that it is not milk.

Rail inspectors find cracks in commuter fleet
Eleven of sixty Comet trains were withdrawn on Thursday after ultrasonic checks showed hairline cracks
near the axle boxes. Commuters on the eastern branch should allow half an hour more. The maker, Brandt
Wagonworks, is paying for the inspections and sent a team of nine welders.

Poet wins prize for book about potholes
Lena Okonedo receives this year's Harrow Medal for Surface, sixty poems on the state of the roads
between her house and the sea. The jury praised a dry wit and an exact eye. The highways department
has ordered twelve copies.

Vaccination bus tours mountain villages
A converted library bus brings flu jabs to seventeen hamlets above the snow line this month. Nurse
Jorun Beck gives up to 80 injections a day and exchanges novels on the side. Those over 65 need no
appointment, everyone else is asked to ring the clinic at Arvenholt beforehand.

Wind park off Kestrel Point reaches full power
The last of 48 turbines was connected on Friday, nine months behind the timetable. Together they feed
390 megawatts into the grid, enough for a city of the size of Corvale. Fishermen receive payments
for the lost cod banks until the licence ends.

School swaps homework for an hour of chores
Pupils at Marrowby's upper school sweep, cook and mend from two until three instead of taking books
home. Marks in mathematics have not suffered, head teacher Colm Ashgrove reports after a term. Some
parents would like the same arrangement for weekends.

Insurer Fidelis Nord raises premiums for cellars
Households near rivers will pay up to 22 percent more for flood cover from July, Fidelis Nord wrote to
its customers. Claims after the two spring floods came to 71 million crowns. Those who fit a backflow
valve keep the former rate, provided a plumber certifies it.

Zoo's eldest tortoise hatches a surprise
Keepers at Ostrand Zoo believed Clement, who is about 90, to be male until an egg lay in the straw on
Sunday. The animal is now called Clementine by everyone but the accounts department, which had the
nameplate renewed only in January.

Parliament passes law on repairable phones
Makers of telephones must offer batteries and screens for eight years after the last sale, under a bill
adopted by 118 votes to 61. Spare parts may cost no more than a third of the device. Retailers warned
of higher prices; repair cafes baked cakes.

Footbridge designed by pupils opens over canal
A curved footbridge of larch and steel now joins the two halves of Tasselford park. Six pupils drew it
for a competition in 2019, and an engineer changed nothing but the bolts. On the opening day 1,100
people crossed it, one of them on stilts.

Coffee chain Morrow buys rival with 63 shops
Morrow Coffee takes over Bean Street for 54 million crowns in cash and shares. About ten branches that
stand within sight of each other are to close. The combined company would be the second largest in the
country, behind Kettle Brothers, if the cartel office agrees.

Glacier above Arvenholt retreats 44 metres
Surveyors who measure the Skarn glacier every September found its tongue 44 metres further up than a
year ago. The hut below it loses its spring and has to pump water from the lake. A plaque marks where
the ice stood when the present warden was born.

Runaway llama stops traffic on ring road
A llama named Duchess left a petting farm through an open gate and trotted six kilometres along the
ring road on Friday morning. Two officers lured her into a horse box with a bag of carrots. The tailback
was gone by ten; the carrots were donated.

Orchestra hires its first conductor by lottery
The Corvale Philharmonic drew lots among five finalists because the musicians' vote ended in a tie
three times. Chance chose Benedikt Roos, aged 34, who conducts Mahler from memory and will do so on
the twelfth. The others receive guest weeks over the coming season.

Tax office sends refund of one farthing
A retired clockmaker in Saltry received a letter announcing a refund of 0.01 crowns, franked at forty
times that sum. The computer knows no lower limit, a spokeswoman explained. He has framed the cheque
and declined to cash it.

Drought forces barges to sail half empty
Freight barges on the lower Ruddle carry at most 700 tonnes as the gauge at Pellworth stands at 61
centimetres. Rates for coal and grain have tripled since August. A day of steady rain would not be
enough, shippers say: it takes a fortnight in the hills.

Cyclist Marta Iwen takes third stage and lead
Iwen broke away with nine kilometres to go on the climb to Skarn Pass and reached the finish 48 seconds
ahead of the field. Yesterday's leader punctured twice and fell to sixth place. Tomorrow's stage is
flat, windy and 203 kilometres long.

Pharmacies run short of children's cough syrup
Three of the four common brands cannot be delivered before December, the chemists' chamber reports. A
factory that makes the bottles burnt down in August. Pharmacists may mix a syrup of their own and charge
the health funds two crowns extra for it.

Mayor of Brindlehaven marries in her own registry
Mayor Sunniva Holt said yes at eleven o'clock in the room where she has married 260 other couples. Her
deputy performed the ceremony and forgot the rings in his bicycle basket. The council's brass band
played until the sandwiches were finished.

Data centre to heat the Quillburn baths
Waste heat from a data centre under construction will warm the three pools of the Quillburn baths from
next winter. The city expects to save 1.2 million crowns a year in gas. Pipes of 800 metres are to be
laid along the disused tannery railway.

Rare orchid halts ski lift for second year
Botanists counted 73 lady's slippers on the slope where Skarn Lifts wants to build a chairlift. The
environment court prolonged its order until the flowering is over. The company now thinks of a longer
route through the quarry, which would cost it another million.

Burglar asleep in furniture shop arrested
Staff of the Bedding Barn in Dunmere discovered a man of 29 under a goose-down quilt when they opened
on Saturday. His rucksack held the till drawer and a pair of slippers. He asked the officers for ten
more minutes.

University finds lecture notes of Ada Strand
Sixteen notebooks by the physicist Ada Strand were lying behind a radiator in the old chemistry hall.
They cover the years 1931 to 1934, when she worked out how ice bends under its own load. The library
intends to put scans of all 1,900 pages online.

Airline Corvair Regional cancels island route
From the end of March nobody flies between Ostrand and the Selkie islands. Corvair Regional carried 23
passengers a day on aircraft for fifty and lost money on every flight. Islanders demand a subsidy; the
ministry points to the ferry, which takes seven hours in fair weather.

Bridge club quarrel ends before the judge
Four members of the Marrowby bridge club, expelled for whispering, may return to the table. The judge
held that the rules forbid signals but not sighs. Costs of 2,350 crowns are borne by the club, which
voted at once to raise its fees.

Electric lorries get their own motorway lane
On 31 kilometres of motorway between Tellmark and the harbour, lorries can draw current from overhead
wires as from today. Twelve hauliers take part in the experiment. After two years the roads agency wants
to decide between wires, bigger batteries and hydrogen.

Amateur decodes inscription on Roman spoon
For decades the letters on a spoon from the Pellworth hoard were held to be a blessing. Retired signalman
Walter Inchbald reads them as a complaint about soup. Two professors agree with him, a third wants to see
the back of the handle first.
"""

ADVERTS = """
Oak dining table with six chairs
Solid oak table, 180 by 90 centimetres, extends to 240, with six upholstered chairs. Some scratches on the
top that can be oiled out. Smoke-free household. Collection from the second floor in Pellworth, a strong
friend would help. 320 crowns.

Two-room flat by the botanical garden
Bright flat on the third floor, 54 square metres, kitchen with window, balcony facing the yard. Rent 690
crowns plus heating, three months' deposit. The tram stops round the corner. Free from the first of June;
viewing on Saturdays between ten and noon, please ring at Marling.

Piano lessons for late beginners
Experienced teacher gives lessons to adults who have always wanted to start. No scales in the first month.
I come to your home in Corvale or you to mine, where a well-tuned upright waits. Thirty crowns for fifty
minutes, the first meeting costs nothing.

Touring bicycle, frame size 58
Green touring bicycle with dynamo lamps, leather saddle and a new chain. Ridden from Ostrand to the sea and
back, otherwise only to the bakery. Two panniers and a spare tube included. I would like 450 crowns, offers
are welcome but not by telephone after nine.

Wanted: kind home for two cats
Because of an allergy we must part with Pepper and Nutmeg, brother and sister, aged four, neutered and used
to a garden. They want to stay together. We give away the basket, the scratching post and a month's food as
well. Only to people who let us visit once.

Dry firewood delivered to your gate
Beech and ash, two years under roof, split to 33 centimetres. 95 crowns a cubic metre loose, delivery free
within twenty kilometres of Arvenholt from three cubic metres. Stacking on request. Order now, in October
the lorry is booked out every year.

Family car, first owner, full service history
Estate car from 2016, 88,000 kilometres, petrol, silver, tow bar and winter tyres on rims. Inspected until
next September. A dent in the left rear door is shown in the photographs. 7,900 crowns; test drives in
Dunmere after work or at the weekend.

Cook wanted for mountain hut
We look for a cook for the season from mid-June to early October, board and a small room under the roof
included. You bake bread, keep calm when forty hikers arrive in the rain, and do not mind the goats. Write
to the warden of the Skarn hut with a few lines about yourself.

Clearing a sewing room
Three mechanical sewing machines, one of them with a knee lever, about ninety zip fasteners and a trunk full
of wool and linen remnants. All together for 150 crowns or singly by arrangement. The machines run; the
buttons are sorted, do not tip them out.

Garage for rent near Saltry station
Dry single garage with electric light and socket, 2.60 metres wide, entrance from Cooper Lane. Suitable for
a car or as a store for a tradesman, no workshop. 85 crowns a month, notice of four weeks on either side.

Moving? Three students and a van
We carry boxes, wardrobes and the occasional piano throughout Ostrand and the surrounding villages. The van
takes eleven cubic metres. Forty-five crowns an hour for two of us, sixty for three, blankets and straps
free of charge. References from forty satisfied households.

Telescope for beginners
Reflector of 130 millimetres aperture on a wooden stand, with two eyepieces and a red lamp. Shows the rings
of Saturn and plenty of craters. My daughter prefers horses now. 110 crowns, or exchange for a riding helmet
and boots in size 36.

Holiday cottage on Selkie Sound
Thatched cottage for up to five guests, eighty steps from the beach, with stove, rowing boat and a well-stocked
shelf of detective stories. No television and hardly any reception. 540 crowns a week in spring, 780 in July
and August. Dogs by agreement, peacocks not.

Accountant with free hours
Small firms and clubs: I do your bookkeeping, annual accounts and reminders, at your desk or mine, from four
hours a month. Twenty years in an auditing office, discreet and punctual. Send me a shoebox of receipts and I
send back a folder.

Greenhouse to dismantle yourself
Aluminium greenhouse, 3.1 by 2.5 metres, glass complete but for one pane, two roof windows with automatic
openers. Must be gone by the end of the month since the diggers are coming. Free to whoever takes it down
properly and leaves the vine standing.

Choir seeks tenors and one patient bass
The Lake Immer Singers rehearse on Tuesdays at half past seven in the parish hall. At present we study a
mass by a composer nobody knows yet. Sight-reading is useful, punctuality essential. Afterwards there is
cheese.
"""

FOREIGN = """
Trilocale luminoso con terrazzo
Affittasi a Borgo Querceto appartamento di 75 mq al quarto piano con ascensore: soggiorno, due camere, cucina
abitabile e terrazzo verso la collina. Riscaldamento autonomo, città e università a dieci minuti di autobus.
Canone 720 euro più spese. Niente agenzie, solo persone referenziate.

Vendo bicicletta da corsa
Telaio in acciaio degli anni ottanta, misura 56, ruote revisionate e sella quasi nuova. Perché la vendo? Il
ginocchio non è più quello di una volta. Si può provare il sabato mattina in piazza a Montefaggio; 280 euro
trattabili, però niente scambi.

Lezioni di latino e greco
Laureata in lettere classiche aiuta studenti del liceo con versioni, grammatica e paura dell'interrogazione.
Metodo tranquillo, risultati già dopo un mese. Quindici euro all'ora, anche a domicilio nella zona di Ponte
Ermellino. La prima lezione è gratuita.

Cucciolo cerca famiglia
Tobia ha cinque mesi, è un incrocio di taglia media, vaccinato e già abituato al guinzaglio. Cerca una casa con
giardino e qualcuno che non lo lasci solo tutto il giorno. Si affida soltanto dopo un colloquio; il rifugio è
aperto ogni giovedì pomeriggio.

Helle Altbauwohnung mit Dielenboden
Drei Zimmer, 82 Quadratmeter, Küche mit Speisekammer, Bad mit Fenster, großer Keller. Die Wohnung liegt im
zweiten Stock eines ruhigen Hauses in Kranichsfurt-Süd, fünf Minuten zur Straßenbahn. 940 Euro kalt, drei
Monatsmieten Kaution. Besichtigung nach Absprache, bitte keine Makler.

Gärtner übernimmt Obstbaumschnitt
Apfel, Birne, Kirsche: Ich schneide Ihre Bäume fachgerecht zwischen November und März. Auch alte, lange nicht
gepflegte Kronen. Schnittgut nehme ich auf Wunsch mit. 38 Euro je Stunde zuzüglich Anfahrt, im Umkreis von
Wölkenrode kostenlos.

Verkaufe Kachelofen zum Selbstabbau
Grüner Kachelofen, um 1910, vollständig und unbeschädigt, Höhe 2,10 Meter. Muss wegen Umbaus bis Ende Februar
abgeholt werden. Die Kacheln sind nummeriert und fotografiert. Preis: 400 Euro und ein Kuchen für die Nachbarn,
die den Lärm ertragen.

Buchhandlung sucht Aushilfe
Für das Weihnachtsgeschäft suchen wir jemanden, der gern liest, höflich bleibt und Pakete schnürt, auch wenn
die Schlange bis zur Tür reicht. Zwölf bis sechzehn Stunden je Woche, übliche Bezahlung, Bücher zum
Einkaufspreis. Buchhandlung Möwe am Fischmarkt, Tölzingen.

Maison de village avec petit jardin
À louer à Saint-Aubrac-des-Prés, maison de quatre pièces sur deux niveaux, cheminée, grenier aménageable et jardin
clos de 150 m². École et boulangerie à pied. Loyer de 680 euros, un mois de caution. Libre dès le 15 septembre,
visites le dimanche sur rendez-vous.

Cours de guitare pour débutants
Musicien expérimenté propose des cours à domicile, le mercredi et le samedi, à partir de huit ans. On apprend
d'abord des chansons, le solfège vient ensuite. Vingt-deux euros la séance, tarif réduit pour les frères et sœurs.
Région de Vernoise uniquement.

Recherche vendangeurs motivés
Le domaine des Trois Hêtres cherche douze personnes pour la récolte, du 8 au 24 septembre environ. Logement
simple sur place, repas du midi offert, salaire à l'heure. Aucune expérience exigée, mais il faut se lever tôt
et aimer plaisanter en plein soleil.

Poussette double presque neuve
Nos jumeaux ont grandi plus vite que prévu: poussette double, bleu nuit, très peu utilisée, pliage facile, housse
de pluie jamais déballée. Prix neuf 590 euros, cédée à 260. À retirer à Clairmoutier, près de la gare, en soirée
de préférence.

駅から徒歩五分の明るい部屋
月見ヶ浜駅から徒歩五分、二階の南向きの部屋です。家賃は六万八千円、管理費は三千円。近くにスーパーと図書館があり、夜も静かです。ペットは小型犬のみ相談できます。内見は週末にお願いします。駐輪場は無料、駐車場は月に五千円で借りられます。

ピアノを譲ります
二十年前に買ったアップライトピアノを、大切に弾いてくださる方に譲ります。調律は毎年していました。色は黒で、小さな傷が一つあります。運送費だけご負担ください。場所は青柳町で、一階からの搬出になります。連絡は夕方以降にお願いします。

喫茶店でアルバイト募集
山手通りの喫茶「かもめ」で、土曜と日曜に働ける方を募集しています。時給は千百円、交通費は全額支給します。コーヒーの淹れ方は丁寧に教えますので、経験は問いません。高校生も歓迎です。履歴書を持って、午後二時から四時の間に店へ来てください。

Piso reformado junto al mercado
Se alquila piso de dos dormitorios en Villarmeña, totalmente reformado, con aire acondicionado y muchísima luz.
Calefacción incluida en el precio, 650 euros al mes. Se pide contrato de trabajo y una fianza. Quien quiera verlo
puede llamar por la mañana; los niños son bienvenidos.
"""

# A form is a template for several notices; the value of each field comes from a list below or from
# a range of numbers.
NEWS_FORMS = """
{firm} publishes {result}
{firm} of {town} earned {number} thousand crowns in the three months to the end of {month}, against {other} thousand
a year before. {cause} {outlook}

Road works on {street} from {day}
The {town} roads office resurfaces {street} from {day} on. {detour} {patience}

{person} retires after {years} years at {firm}
{person}, who joined {firm} as {job} {years} years ago, leaves at the end of {month}. {praise} {future}

Fish auction at {town} on {day}
Prices in crowns a kilogram at the {town} fish auction on {day}, with the quantity landed: cod {cod}.20
({tonnes} tonnes), haddock {haddock}.50, plaice {plaice}.80, mackerel {mackerel}.10. Supply was {supply},
demand {demand}. The next sale begins at five in the morning, weather permitting.
"""

ADVERT_FORMS = """
Room in shared flat in {town}
{flatmates} {room} Rent {rent} crowns a month with everything included. {wish}

Lost near {street}: {thing}
On {day} I lost {thing} between {street} and the {place} in {town}. {value} {reward}

{flats} flats near {street}, {town}
Vestibule Estates offers {flats} newly built flats of {low} to {high} square metres near {street} in {town}. All have
underfloor heating, fitted kitchens and a lift to the cellar. {selling} Our show flat is open every {day} from two to
five; no commission is payable by the buyer.
"""
FORM_COUNT = 5

FIELDS = {
    "firm": [
        "Brandt Wagonworks",
        "Castor Homes",
        "Larkfield Seeds",
        "Pailworks",
        "Ostrand Glass",
        "Kettle Brothers",
        "Hinge & Lever",
        "Morrow Coffee",
        "Selkie Seafood",
    ],
    "town": [
        "Varnmouth",
        "Pellworth",
        "Corvale",
        "Tellmark",
        "Dunmere",
        "Saltry",
        "Quillburn",
        "Marrowby",
        "Tasselford",
        "Brindlehaven",
    ],
    "result": [
        "quarterly figures",
        "its interim report",
        "unaudited results",
        "its quarterly accounts",
        "figures ahead of schedule",
        "a short statement to shareholders",
    ],
    "month": ["January", "March", "April", "June", "September", "November"],
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    "street": [
        "Cooper Lane",
        "the Old Tannery Road",
        "Bishop's Walk",
        "Lime Avenue",
        "Gasworks Street",
        "the Ruddle embankment",
        "Mill Rise",
        "Observatory Hill",
    ],
    "person": ["Gudrun Abel", "Tobias Ferrow", "Winifred Oakes", "Emil Castagno", "Hanna Brisk", "Joseph Tarrant"],
    "job": [
        "an apprentice fitter",
        "a typist",
        "a night porter",
        "a laboratory assistant",
        "a driver",
        "the third clerk",
    ],
    "cause": [
        "Cheaper electricity and two large export orders made the difference.",
        "A strike in the warehouse cost it eleven days of deliveries.",
        "Customers bought less but chose the dearer models.",
        "The sale of a plot beside the railway brought a single gain.",
        "Repairs after the spring flood weighed on the accounts.",
        "Demand from hotels recovered while private buyers held back.",
    ],
    "outlook": [
        "For the rest of the year the board is cautious.",
        "A dividend of forty cents will be put to the annual meeting.",
        "The forecast made in winter still stands, the finance director wrote.",
        "Investors were not impressed and the share lost four percent.",
        "Sixty new jobs are planned by Christmas.",
        "It plans no further price increases, a manager said.",
    ],
    "detour": [
        "Drivers are sent round by the fire station for about a week.",
        "One lane stays open, with traffic lights, until the job is done.",
        "Buses stop two hundred metres further down, outside the chemist's.",
        "During the first night the crossing is shut altogether.",
        "Cyclists may push their bicycles along the pavement.",
        "Residents reach their garages before seven and after six.",
    ],
    "patience": [
        "Noise is unavoidable while the old surface is milled away.",
        "If it rains everything is put off by a day.",
        "At the same time the water board replaces a main from 1912.",
        "The bill of 140,000 crowns is shared with the county.",
        "Shops remain open and promise coffee to those who walk.",
        "New kerbs will make the stops easier for wheelchairs.",
    ],
    "praise": [
        "Colleagues describe a person who read every manual and lent none.",
        "There was hardly a machine in the hall that did not pass through these hands.",
        "The works choir loses its only reliable alto, the chairman regretted.",
        "Three managing directors came and went in that time.",
        "Not a single day of sickness stands in the file.",
        "Generations of trainees learnt to label drawers from this example.",
    ],
    "future": [
        "Asked about plans, the answer was bees.",
        "A boat named Overtime is waiting in the harbour.",
        "The successor has been at the next desk since autumn.",
        "The farewell takes place in the canteen, with pancakes.",
        "Grandchildren in four towns have already filled the calendar.",
        "First of all there is an attic to be tidied.",
    ],
    "flatmates": [
        "We are two nurses and a carpenter who cook together on Sundays.",
        "A retired teacher lets a room of her large flat to a quiet student.",
        "Four doctoral students look for a fifth who also owns a vacuum cleaner.",
        "Young family with a spare room seeks someone who likes noise in the morning.",
        "Musicians' household with a soundproof cellar has space again.",
        "Two brothers, seldom home, need a third person for the plants.",
    ],
    "room": [
        "The room has fourteen square metres, a bed and a view of the gasometer.",
        "It is small, warm and painted in a yellow one gets used to.",
        "You would live under the roof, with a sloping wall and swifts above.",
        "It looks on the courtyard and its chestnut and is empty but for a wardrobe.",
        "Your window faces the church clock, which is silent at night.",
        "The floor was sanded last month and the lamp may stay.",
    ],
    "wish": [
        "Smokers are welcome on the balcony.",
        "Please tell us what you eat and when you sleep.",
        "It can be taken for half a year or for good.",
        "Come by for tea on any evening this week.",
        "There is a cellar for bicycles and an unwritten rule about dishes.",
        "Pets are possible if the parrot agrees.",
    ],
    "thing": [
        "a silver locket",
        "a grey folder with sheet music",
        "one child's red boot",
        "my grandfather's fountain pen",
        "a set of seven keys",
        "a hearing aid in a blue case",
    ],
    "place": ["swimming baths", "post office", "playground", "bus depot", "fish market", "library"],
    "value": [
        "It is worth little to anybody but me.",
        "Without it I cannot work, so every hint is useful.",
        "There is a name engraved inside, in very small letters.",
        "I was running for the last tram and noticed nothing.",
        "It may have slipped out of my coat when I paid the parking fee.",
        "Perhaps somebody has put it on a wall or a window sill.",
    ],
    "supply": ["ample", "thin after the gales", "as usual for the season", "modest", "uneven", "better than last week"],
    "demand": ["brisk", "weak", "mostly from the smokehouses", "steady", "strong from abroad", "hardly worth the name"],
    "selling": [
        "The tram to the centre takes nine minutes.",
        "Behind the house lies the old deer park.",
        "Parking places can be bought with each of them.",
        "A nursery school moves in on the ground floor.",
        "From the upper storeys one sees the lighthouse.",
        "Every second one has a terrace facing west.",
    ],
    "reward": [
        "The finder gets fifty crowns and an apple cake.",
        "Please leave a message at the kiosk, they know me there.",
        "I pay the postage gladly and a drink on top.",
        "A note under the door of number nine is enough.",
        "Thank you for looking twice on your way home.",
        "The lost property office has my address.",
    ],
}
NUMBERS = {
    "number": (120, 990),
    "other": (120, 990),
    "years": (28, 47),
    "rent": (240, 460),
    "cod": (6, 9),
    "haddock": (4, 8),
    "plaice": (7, 12),
    "mackerel": (2, 5),
    "tonnes": (11, 98),
    "flats": (12, 68),
    "low": (38, 59),
    "high": (71, 134),
}

# Edits of the copies.
SYNONYMS = [
    ("about", "around"),
    ("because", "since"),
    ("reports", "announces"),
    ("report", "announce"),
    ("discovered", "found"),
    ("found", "discovered"),
    ("officers", "policemen"),
    ("would", "should"),
    ("company", "firm"),
    ("people", "persons"),
    ("until", "till"),
    ("large", "big"),
    ("small", "little"),
    ("autumn", "October"),
    ("Monday", "Tuesday"),
    ("Friday", "Thursday"),
    ("Saturday", "Sunday"),
    ("Wednesday", "Tuesday"),
    ("crowns", "marks"),
    ("another", "a further"),
    ("wants", "intends"),
    ("spring", "summer"),
    ("morning", "evening"),
    ("town", "city"),
    ("more", "rather more"),
    ("third", "fourth"),
    ("euro", "EUR"),
    ("Euro", "EUR"),
    ("euros", "EUR"),
    ("gratuita", "gratis"),
    ("soltanto", "solo"),
    ("bitte", "gern"),
    ("petit", "joli"),
    ("simple", "modeste"),
    ("静か", "安全"),
    ("小さな", "わずかな"),
    ("丁寧に", "親切に"),
    ("and", "as well as"),
]
MORE_NEWS = [
    "A statement is expected later this week.",
    "Further details were not available at first.",
    "Our correspondent reports from the scene.",
    "This article has been corrected since it first appeared.",
    "Readers may send their comments to the editor.",
]
MORE_ADVERTS = [
    "Price reduced!",
    "Still available, please do not ask twice.",
    "Renewed advertisement.",
    "Serious enquiries only.",
]
MORE_FOREIGN = ["Tel. 555 0142.", "E-mail: box17@example.org", "Ref. A-2207.", "www.example.org/2207"]


class Chooser:
    """Random choices by random() alone, which gives the same numbers in every version of Python."""

    def __init__(self, seed):
        self._random = random.Random(seed).random

    def below(self, n):
        return int(self._random() * n)

    def one_of(self, values):
        return values[self.below(len(values))]

    def shuffled(self, values):
        values = list(values)
        for i in range(len(values) - 1, 0, -1):
            j = self.below(i + 1)
            values[i], values[j] = values[j], values[i]
        return values


def paragraphs(text):
    """Generate the (headline, body) pairs of a text of stories."""
    for paragraph in text.strip().split("\n\n"):
        headline, *lines = paragraph.split("\n")
        yield headline, " ".join(lines)


def filled_forms(forms, choose):
    """Generate FORM_COUNT notices of each form; within one form no value of FIELDS is used twice."""
    for headline, body in paragraphs(forms):
        decks = {name: choose.shuffled(values) for name, values in FIELDS.items()}
        for i in range(FORM_COUNT):
            values = {name: deck[i] for name, deck in decks.items()}
            for name, (low, high) in NUMBERS.items():
                values[name] = low + choose.below(high - low + 1)
            yield headline.format(**values), body.format(**values)


def change_number(story, choose):
    """Change one digit of the body, or return None if it has no digit from 1 to 9."""
    headline, body, kind = story
    places = [i for i, c in enumerate(body) if "1" <= c <= "9"]
    if not places:
        return None
    i = choose.one_of(places)
    digit = choose.one_of([d for d in "123456789" if d != body[i]])
    return headline, body[:i] + digit + body[i + 1 :], kind


def change_word(story, choose):
    """Replace one word of SYNONYMS by its partner, or return None if none occurs."""
    headline, body, kind = story
    spaced = f" {body}"
    found = [(a, b) for a, b in SYNONYMS if (f" {a} " in spaced or (a > "z" and a in spaced))]
    if not found:
        return None
    old, new = found[choose.below(len(found))]
    if old > "z":
        return headline, body.replace(old, new, 1), kind
    return headline, spaced.replace(f" {old} ", f" {new} ", 1)[1:], kind


def add_sentence(story, choose):
    headline, body, kind = story
    more = {"news": MORE_NEWS, "advert": MORE_ADVERTS, "foreign": MORE_FOREIGN}[kind]
    return headline, f"{body} {choose.one_of(more)}", kind


def capital_headline(story, choose):
    headline, body, kind = story
    return headline.upper(), body, kind


def typo(story, choose):
    """Swap two letters inside a long word, or return None if there is no such word."""
    headline, body, kind = story
    words = body.split(" ")
    places = [i for i, w in enumerate(words) if len(w) >= 7 and w.isalpha() and w.isascii()]
    if not places:
        return None
    i = choose.one_of(places)
    word = words[i]
    at = 2 + choose.below(len(word) - 4)
    words[i] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return headline, " ".join(words), kind


def same(story, choose):
    return story


EDITS = [same, change_number, change_word, add_sentence, capital_headline, typo]


def texts():
    """Return all texts in the order of the file."""
    choose = Chooser(SEED)
    originals = [(*s, "news") for s in paragraphs(NEWS)]
    originals += [(*s, "advert") for s in paragraphs(ADVERTS)]
    originals += [(*s, "foreign") for s in paragraphs(FOREIGN)]
    originals += [(*s, "news") for s in filled_forms(NEWS_FORMS, choose)]
    originals += [(*s, "advert") for s in filled_forms(ADVERT_FORMS, choose)]
    everything = choose.shuffled(originals)
    sources = list(everything)
    for number in range(NUM_COPIES):
        # Every fifth copy is made from a copy, so that edits add up along a chain.
        if number % 5 == 4:
            source = sources[len(originals) + choose.below(len(sources) - len(originals))]
        else:
            source = sources[choose.below(len(originals))]
        edit = EDITS[number % len(EDITS)]
        copy = edit(source, choose)
        if copy is None:
            copy = add_sentence(source, choose)
        sources.append(copy)
        at = next(i for i, story in enumerate(everything) if story is source)
        if edit is typo:
            # The misspelt text comes first; the source is its correction.
            everything.insert(at, copy)
        else:
            # As in a news feed, most copies follow soon, some much later.
            reach = 12 if number % 3 else len(everything)
            everything.insert(min(at + 1 + choose.below(reach), len(everything)), copy)
    return [f"{headline}{'. ' if kind == 'news' else ' '}{body}" for headline, body, kind in everything]


def main():
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("sample.tsv")
    lines = [f"s{i:03d}\t{text}\n" for i, text in enumerate(texts(), 1)]
    output.write_bytes("".join(lines).encode("utf-8"))


if __name__ == "__main__":
    main()
